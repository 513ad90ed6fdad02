`kgateway topic-configs` and docs/topic-configs.md: every config of topics, and which of them change nothing here, and why.
