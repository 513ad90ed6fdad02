Consumer groups can have session timeouts, heartbeat and assignment intervals of their own: IncrementalAlterConfigs, DescribeConfigs and ListConfigResources for groups.
