// Requests of administrators with kadm, with responses in a form that does not depend on the server.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
)

// Returns Kafka's name of the error, or the text of another error.
func told(err error) string {
	var refusal *kerr.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &refusal):
		return refusal.Message
	}
	return err.Error()
}

func value(text *string) string {
	if text == nil {
		return "null"
	}
	return *text
}

func tellAltered(altered kadm.AlterConfigsResponses, err error) []string {
	lines := []string{told(err)}
	for _, one := range altered {
		lines = append(lines, fmt.Sprintf("%s: %s %s", one.Name, told(one.Err), one.ErrMessage))
	}
	return lines
}

// Returns some configs of each resource.
func tellConfigs(found kadm.ResourceConfigs, err error, keys ...string) []string {
	lines := []string{told(err)}
	for _, resource := range found {
		lines = append(lines, fmt.Sprintf("%s: %s", resource.Name, told(resource.Err)))
		for _, entry := range resource.Configs {
			for _, key := range keys {
				if key == entry.Key {
					lines = append(lines, fmt.Sprintf("%s=%s from %v", key, value(entry.Value), entry.Source))
				}
			}
		}
	}
	return lines
}

func administer(ctx context.Context, admin *kadm.Client, t task) (any, error) {
	answers := map[string][]string{}
	partitions := kadm.TopicsSet{t.Topic: {0: {}, 1: {}}}
	retention, wrong, name := "77000", "x", t.Topic+"-go"

	created, err := admin.CreateTopics(ctx, 2, 1, map[string]*string{"retention.ms": &retention}, name, "bad name", t.Topic)
	lines := []string{told(err)}
	for _, one := range created.Sorted() {
		lines = append(lines, fmt.Sprintf("%s: %s %d %d", one.Topic, told(one.Err), one.NumPartitions, one.ReplicationFactor))
	}
	answers["create topics"] = lines

	grown, err := admin.UpdatePartitions(ctx, 3, name, "nowhere")
	lines = []string{told(err)}
	for _, one := range grown.Sorted() {
		lines = append(lines, fmt.Sprintf("%s: %s", one.Topic, told(one.Err)))
	}
	answers["update partitions"] = lines

	changes := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "segment.ms", Value: &retention}}
	altered, err := admin.AlterTopicConfigs(ctx, changes, name)
	answers["alter topic configs"] = tellAltered(altered, err)
	changes = []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "segment.ms", Value: &wrong}}
	altered, err = admin.ValidateAlterTopicConfigs(ctx, changes, name)
	answers["alter topic configs wrongly"] = tellAltered(altered, err)
	changes = []kadm.AlterConfig{{Op: kadm.SetConfig, Name: "num.partitions", Value: &retention}}
	altered, err = admin.ValidateAlterBrokerConfigs(ctx, changes, 1)
	answers["alter broker configs wrongly"] = tellAltered(altered, err)
	described := []string{}
	for !slices.Contains(described, "segment.ms=77000 from DYNAMIC_TOPIC_CONFIG") { // brokers learn of it a moment later
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		found, err := admin.DescribeTopicConfigs(ctx, name)
		described = tellConfigs(found, err, "retention.ms", "segment.ms", "segment.bytes", "cleanup.policy")
	}
	answers["describe topic configs"] = described
	found, err := admin.DescribeBrokerConfigs(ctx, 1)
	answers["describe broker configs"] = tellConfigs(found, err, "log.segment.bytes", "fetch.max.bytes", "delete.topic.enable")

	dirs, err := admin.DescribeBrokerLogDirs(ctx, 1, partitions)
	lines = []string{told(err)}
	for _, dir := range dirs {
		for _, one := range dir.Topics.Sorted() {
			lines = append(lines, fmt.Sprintf("%s-%d: %d %d %v", one.Topic, one.Partition, one.Size, one.OffsetLag, one.IsFuture))
		}
	}
	answers["describe log dirs"] = lines

	elected, err := admin.ElectLeaders(ctx, kadm.ElectPreferredReplica, partitions)
	lines = []string{told(err)}
	for _, topic := range elected {
		for _, one := range topic {
			lines = append(lines, fmt.Sprintf("%s-%d: %s %s", one.Topic, one.Partition, told(one.Err), one.ErrMessage))
		}
	}
	answers["elect leaders"] = lines

	var wanted kadm.AlterPartitionAssignmentsReq
	wanted.Assign(t.Topic, 0, []int32{1})
	wanted.Assign(t.Topic, 1, []int32{7})
	assigned, err := admin.AlterPartitionAssignments(ctx, wanted)
	lines = []string{told(err)}
	for _, one := range assigned.Sorted() {
		lines = append(lines, fmt.Sprintf("%s-%d: %s %s", one.Topic, one.Partition, told(one.Err), one.ErrMessage))
	}
	answers["alter partition assignments"] = lines
	moving, err := admin.ListPartitionReassignments(ctx, nil)
	answers["list partition reassignments"] = []string{told(err), fmt.Sprint(len(moving))}

	producers, err := admin.DescribeProducers(ctx, partitions)
	lines = []string{told(err)}
	for _, one := range producers.SortedPartitions() {
		lines = append(lines, fmt.Sprintf("%s-%d: %s %d", one.Topic, one.Partition, told(one.Err), len(one.ActiveProducers)))
	}
	answers["describe producers"] = lines

	updated, err := admin.UpdateFeatures(ctx, true, kadm.FeatureUpdate{Feature: "group.version", MaxVersionLevel: 1, UpgradeType: 1})
	answers["update features"] = []string{told(err), fmt.Sprint(len(updated))}
	_, err = admin.UpdateFeatures(ctx, true, kadm.FeatureUpdate{Feature: "nope", MaxVersionLevel: 1, UpgradeType: 1})
	answers["update features wrongly"] = []string{told(err)}

	deleted, err := admin.DeleteRecords(ctx, kadm.Offsets{t.Topic: {0: {Topic: t.Topic, Partition: 0, At: 0}}})
	lines = []string{told(err)}
	for _, one := range deleted.Sorted() {
		lines = append(lines, fmt.Sprintf("%s-%d: %s %d", one.Topic, one.Partition, told(one.Err), one.LowWatermark))
	}
	answers["delete records"] = lines

	gone, err := admin.DeleteTopics(ctx, name, "nowhere")
	lines = []string{told(err)}
	for _, one := range gone.Sorted() {
		lines = append(lines, fmt.Sprintf("%s: %s", one.Topic, told(one.Err)))
	}
	answers["delete topics"] = lines
	for _, lines := range answers { // kadm returns topics in any order, even where it says sorted (their ids differ)
		sort.Strings(lines)
	}
	return answers, nil
}
