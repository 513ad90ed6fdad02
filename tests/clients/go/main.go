// Carries out the tasks of tests/clients/program.py with franz-go: a line of JSON in and one out. With an argument it is
// a group member instead, and with `copy` before it a copier in transactions.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const patience = 30 * time.Second

type header struct {
	Key   string `json:"key"`
	Value []byte `json:"value"`
}

type row struct {
	Partition int32    `json:"partition"`
	Offset    int64    `json:"offset"`
	Timestamp int64    `json:"timestamp"`
	Key       []byte   `json:"key"`
	Value     []byte   `json:"value"`
	Headers   []header `json:"headers"`
}

// The fields of all tasks; a line of JSON has those of its task.
type task struct {
	Do           string            `json:"do"`
	Bootstrap    string            `json:"bootstrap"`
	Topic        string            `json:"topic"`
	Rows         []row             `json:"rows"`
	Partition    *int32            `json:"partition"`
	Codec        string            `json:"codec"`
	Acks         int               `json:"acks"`
	Idempotent   bool              `json:"idempotent"`
	BatchBytes   *int32            `json:"batch_bytes"`
	RequestBytes int32             `json:"request_bytes"`
	Starts       map[int32]int64   `json:"starts"`
	Offset       int64             `json:"offset"`
	Count        int               `json:"count"`
	Timestamp    int64             `json:"timestamp"`
	Partitions   int32             `json:"partitions"`
	Total        int               `json:"total"`
	Config       map[string]string `json:"config"`
}

var codecs = map[string]kgo.CompressionCodec{
	"none":   kgo.NoCompression(),
	"gzip":   kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(),
	"lz4":    kgo.Lz4Compression(),
	"zstd":   kgo.ZstdCompression(),
}

func send(ctx context.Context, t task) (any, error) {
	batchBytes := t.RequestBytes
	if t.BatchBytes != nil {
		batchBytes = *t.BatchBytes
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(t.Bootstrap),
		kgo.AllowAutoTopicCreation(),
		kgo.UnknownTopicRetries(1),
		kgo.ProducerBatchCompression(codecs[t.Codec]),
		kgo.ProducerBatchMaxBytes(batchBytes),
		kgo.RequiredAcks(map[int]kgo.Acks{0: kgo.NoAck(), 1: kgo.LeaderAck(), -1: kgo.AllISRAcks()}[t.Acks]),
	}
	if !t.Idempotent {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	if t.Partition != nil {
		options = append(options, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	records := make([]*kgo.Record, len(t.Rows))
	for i, row := range t.Rows {
		records[i] = &kgo.Record{Topic: t.Topic, Key: row.Key, Value: row.Value, Timestamp: time.UnixMilli(row.Timestamp)}
		if t.Partition != nil {
			records[i].Partition = *t.Partition
		}
		for _, h := range row.Headers {
			records[i].Headers = append(records[i].Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
		}
	}
	results := client.ProduceSync(ctx, records...)
	if err := results.FirstErr(); err != nil {
		return nil, err
	}
	offsets := make([]int64, len(records))
	for i, record := range records {
		offsets[i] = record.Offset
	}
	return offsets, nil
}

// The open consumer, and its topic.
type reader struct {
	bootstrap string
	topic     string
	client    *kgo.Client
}

var open reader

func openReader(ctx context.Context, t task) (any, error) {
	open = reader{bootstrap: t.Bootstrap, topic: t.Topic}
	return true, nil
}

func closeReader(ctx context.Context, t task) (any, error) {
	if open.client != nil {
		open.client.Close()
	}
	open = reader{}
	return true, nil
}

func assign(ctx context.Context, t task) (any, error) {
	offsets := map[int32]kgo.Offset{}
	for index, start := range t.Starts {
		switch start {
		case -2:
			offsets[index] = kgo.NewOffset().AtStart()
		case -1: // the client would look up the end only later
			_, end, err := watermarks(ctx, index)
			if err != nil {
				return nil, err
			}
			offsets[index] = kgo.NewOffset().At(end)
		default:
			offsets[index] = kgo.NewOffset().At(start)
		}
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(open.bootstrap),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{open.topic: offsets}),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	open.client = client
	return true, err
}

func seek(ctx context.Context, t task) (any, error) {
	open.client.SetOffsets(map[string]map[int32]kgo.EpochOffset{
		open.topic: {*t.Partition: {Epoch: -1, Offset: t.Offset}},
	})
	return true, nil
}

func take(ctx context.Context, t task) (any, error) {
	rows := []row{}
	for len(rows) < t.Count {
		fetches := open.client.PollRecords(ctx, t.Count-len(rows))
		if err := fetches.Err(); err != nil {
			return nil, err
		}
		for _, record := range fetches.Records() {
			headers := []header{}
			for _, h := range record.Headers {
				headers = append(headers, header{h.Key, h.Value})
			}
			rows = append(rows, row{
				record.Partition, record.Offset, record.Timestamp.UnixMilli(), record.Key, record.Value, headers,
			})
		}
	}
	return rows, nil
}

func watermarks(ctx context.Context, partition int32) (int64, int64, error) {
	admin, err := connect(open.bootstrap)
	if err != nil {
		return 0, 0, err
	}
	defer admin.Close()
	starts, err := admin.ListStartOffsets(ctx, open.topic)
	if err != nil {
		return 0, 0, err
	}
	ends, err := admin.ListEndOffsets(ctx, open.topic)
	if err != nil {
		return 0, 0, err
	}
	low, _ := starts.Lookup(open.topic, partition)
	high, _ := ends.Lookup(open.topic, partition)
	return low.Offset, high.Offset, errors.Join(low.Err, high.Err)
}

func tellWatermarks(ctx context.Context, t task) (any, error) {
	low, high, err := watermarks(ctx, *t.Partition)
	return []int64{low, high}, err
}

func offsetAt(ctx context.Context, t task) (any, error) {
	admin, err := connect(open.bootstrap)
	if err != nil {
		return nil, err
	}
	defer admin.Close()
	listed, err := admin.ListOffsetsAfterMilli(ctx, t.Timestamp, open.topic)
	if err != nil {
		return nil, err
	}
	found, _ := listed.Lookup(open.topic, *t.Partition)
	if found.Timestamp == -1 { // the end, because no record is that late
		return nil, found.Err
	}
	return found.Offset, found.Err
}

func connect(bootstrap string) (*kadm.Client, error) {
	return kadm.NewOptClient(kgo.SeedBrokers(bootstrap))
}

func administering(do func(context.Context, *kadm.Client, task) (any, error)) func(context.Context, task) (any, error) {
	return func(ctx context.Context, t task) (any, error) {
		admin, err := connect(t.Bootstrap)
		if err != nil {
			return nil, err
		}
		defer admin.Close()
		return do(ctx, admin, t)
	}
}

func topics(ctx context.Context, admin *kadm.Client, t task) (any, error) {
	found, err := admin.ListTopics(ctx)
	counts := map[string]int{}
	for name, topic := range found {
		counts[name] = len(topic.Partitions)
	}
	return counts, err
}

func createTopic(ctx context.Context, admin *kadm.Client, t task) (any, error) {
	config := map[string]*string{}
	for name, value := range t.Config {
		config[name] = &value
	}
	_, err := admin.CreateTopic(ctx, t.Partitions, 1, config, t.Topic)
	return true, err
}

func deleteTopic(ctx context.Context, admin *kadm.Client, t task) (any, error) {
	_, err := admin.DeleteTopic(ctx, t.Topic)
	return true, err
}

func addPartitions(ctx context.Context, admin *kadm.Client, t task) (any, error) {
	responses, err := admin.UpdatePartitions(ctx, t.Total, t.Topic)
	return true, errors.Join(err, responses.Error())
}

func config(ctx context.Context, admin *kadm.Client, t task) (any, error) {
	found, err := admin.DescribeTopicConfigs(ctx, t.Topic)
	if err != nil {
		return nil, err
	}
	resource, err := found.On(t.Topic, nil)
	if err != nil {
		return nil, err
	}
	values := map[string]*string{}
	for _, entry := range resource.Configs {
		values[entry.Key] = entry.Value
	}
	return values, resource.Err
}

var tasks = map[string]func(context.Context, task) (any, error){
	"send":           send,
	"open":           openReader,
	"close":          closeReader,
	"assign":         assign,
	"seek":           seek,
	"take":           take,
	"watermarks":     tellWatermarks,
	"offset_at":      offsetAt,
	"topics":         administering(topics),
	"create_topic":   administering(createTopic),
	"delete_topic":   administering(deleteTopic),
	"add_partitions": administering(addPartitions),
	"config":         administering(config),
	"administer":     administering(administer),
}

func answer(line []byte) any {
	var t task
	if err := json.Unmarshal(line, &t); err != nil {
		return map[string]any{"failed": err.Error()}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	done, err := tasks[t.Do](ctx, t)
	var refusal *kerr.Error
	switch {
	case errors.As(err, &refusal):
		return map[string]any{"refused": refusal.Code, "why": err.Error()}
	case err != nil:
		return map[string]any{"failed": err.Error()}
	}
	return map[string]any{"done": done}
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == "copy" {
		runCopier(os.Args[2])
		return
	}
	if len(os.Args) > 1 {
		runMember(os.Args[1])
		return
	}
	in, out := bufio.NewReader(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		line, err := in.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		if err := out.Encode(answer(line)); err != nil {
			log.Fatal(err)
		}
	}
}
