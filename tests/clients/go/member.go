// A group member with franz-go; see tests/clients/groups/members/reports.py.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	pollPatience   = 100 * time.Millisecond
	commitPatience = 10 * time.Second
)

type wanted struct {
	Bootstrap           string   `json:"bootstrap"`
	Group               string   `json:"group"`
	Topics              []string `json:"topics"`
	Protocol            string   `json:"protocol"`
	SessionTimeoutMs    int      `json:"session_timeout_ms"`
	HeartbeatIntervalMs int      `json:"heartbeat_interval_ms"`
	Instance            *string  `json:"instance"`
	WorkMs              int      `json:"work_ms"`
	HandoverMs          int      `json:"handover_ms"`
}

var strategies = map[string][]kgo.GroupBalancer{
	"eager":       {kgo.RangeBalancer()},
	"cooperative": {kgo.CooperativeStickyBalancer()},
	"consumer":    {kgo.StickyBalancer()},
}

func now() float64 {
	return float64(time.Now().UnixMicro()) / 1e6
}

func tell(event string, of map[string]any) {
	line := map[string]any{"at": now(), "told": event}
	for key, value := range of {
		line[key] = value
	}
	text, err := json.Marshal(line)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := os.Stdout.Write(append(text, '\n')); err != nil {
		log.Fatal(err)
	}
}

func place(topic string, partition int32) string {
	return fmt.Sprintf("%s:%d", topic, partition)
}

func tellPartitions(event string, afterMs int) func(context.Context, *kgo.Client, map[string][]int32) {
	return func(_ context.Context, client *kgo.Client, found map[string][]int32) {
		places := []string{}
		for topic, partitions := range found {
			for _, partition := range partitions {
				places = append(places, place(topic, partition))
			}
		}
		member, _ := client.GroupMetadata()
		time.Sleep(time.Duration(afterMs) * time.Millisecond)
		tell(event, map[string]any{"partitions": places, "member": member})
	}
}

func newMember(how wanted) (*kgo.Client, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(how.Bootstrap),
		kgo.ConsumerGroup(how.Group),
		kgo.ConsumeTopics(how.Topics...),
		kgo.Balancers(strategies[how.Protocol]...),
		kgo.DisableAutoCommit(),
		kgo.BlockRebalanceOnPoll(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMaxWait(pollPatience),
		kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.MetadataMaxAge(time.Second),
		kgo.SessionTimeout(time.Duration(how.SessionTimeoutMs) * time.Millisecond),
		kgo.HeartbeatInterval(time.Duration(how.HeartbeatIntervalMs) * time.Millisecond),
		kgo.OnPartitionsAssigned(tellPartitions("assigned", 0)),
		kgo.OnPartitionsRevoked(tellPartitions("revoked", how.HandoverMs)),
		kgo.OnPartitionsLost(tellPartitions("lost", 0)),
	}
	if how.Instance != nil {
		options = append(options, kgo.InstanceID(*how.Instance))
	}
	if how.Protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	return kgo.NewClient(options...)
}

// Reports processed records; returns the offsets to commit.
func process(records []*kgo.Record) map[string]map[int32]kgo.EpochOffset {
	offsets := map[string][]int64{}
	next := map[string]map[int32]kgo.EpochOffset{}
	for _, record := range records {
		where := place(record.Topic, record.Partition)
		offsets[where] = append(offsets[where], record.Offset)
		if next[record.Topic] == nil {
			next[record.Topic] = map[int32]kgo.EpochOffset{}
		}
		next[record.Topic][record.Partition] = kgo.EpochOffset{Epoch: record.LeaderEpoch, Offset: record.Offset + 1}
	}
	tell("processed", map[string]any{"offsets": offsets})
	return next
}

func refusal(response *kmsg.OffsetCommitResponse, err error) error {
	if err != nil {
		return err
	}
	for _, topic := range response.Topics {
		for _, partition := range topic.Partitions {
			if err := kerr.ErrorForCode(partition.ErrorCode); err != nil {
				return err
			}
		}
	}
	return nil
}

func commit(client *kgo.Client, next map[string]map[int32]kgo.EpochOffset) {
	offsets := map[string]int64{}
	for topic, partitions := range next {
		for partition, offset := range partitions {
			offsets[place(topic, partition)] = offset.Offset
		}
	}
	of := map[string]any{"offsets": offsets, "since": now()}
	ctx, cancel := context.WithTimeout(context.Background(), commitPatience)
	defer cancel()
	var failure error
	client.CommitOffsetsSync(ctx, next, func(
		_ *kgo.Client, _ *kmsg.OffsetCommitRequest, response *kmsg.OffsetCommitResponse, err error,
	) {
		failure = refusal(response, err)
	})
	if failure == nil {
		tell("committed", of)
		return
	}
	of["code"], of["why"] = -1, failure.Error()
	var told *kerr.Error
	if errors.As(failure, &told) {
		of["code"] = told.Code
	}
	tell("refused", of)
}

func pollOnce(client *kgo.Client, work time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), pollPatience)
	defer cancel()
	fetches := client.PollRecords(ctx, 1_000)
	defer client.AllowRebalance()
	fetches.EachError(func(topic string, partition int32, err error) {
		if !errors.Is(err, context.DeadlineExceeded) {
			tell("failed", map[string]any{"why": err.Error(), "code": -1})
		}
	})
	if records := fetches.Records(); len(records) > 0 {
		next := process(records)
		time.Sleep(work)
		commit(client, next)
	}
}

func runMember(argument string) {
	var how wanted
	if err := json.Unmarshal([]byte(argument), &how); err != nil {
		log.Fatal(err)
	}
	client, err := newMember(how)
	if err != nil {
		log.Fatal(err)
	}
	leave := make(chan struct{})
	go func() {
		bufio.NewReader(os.Stdin).ReadByte()
		close(leave)
	}()
	for {
		select {
		case <-leave:
			tell("leaving", nil)
			client.CloseAllowingRebalance()
			tell("left", nil)
			return
		default:
			pollOnce(client, time.Duration(how.WorkMs)*time.Millisecond)
		}
	}
}
