// A copier with franz-go; see tests/clients/transactions/workers/reports.py.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"os"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	batch        = 20
	aborts       = 5
	dawdle       = 60 * time.Millisecond
	copyPatience = 45 * time.Second
)

type copying struct {
	Bootstrap string `json:"bootstrap"`
	Input     string `json:"input"`
	Output    string `json:"output"`
	Group     string `json:"group"`
	ID        string `json:"id"`
	Seed      uint64 `json:"seed"`
}

type try struct {
	mark   string
	aborts bool
	dawdle time.Duration
}

func nextTry(how copying, chance *rand.Rand, number int) try {
	meant, aborting := "commit", chance.IntN(aborts) == 0
	if aborting {
		meant = "abort"
	}
	mark := fmt.Sprintf("%s/%d/%d/%s", how.ID, how.Seed, number, meant)
	return try{mark, aborting, time.Duration(chance.Int64N(int64(dawdle)))}
}

func newSession(how copying) (*kgo.GroupTransactSession, error) {
	return kgo.NewGroupTransactSession(
		kgo.SeedBrokers(how.Bootstrap),
		kgo.TransactionalID(how.ID),
		kgo.TransactionTimeout(20*time.Second),
		kgo.DefaultProduceTopic(how.Output),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ConsumerGroup(how.Group),
		kgo.ConsumeTopics(how.Input),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(200*time.Millisecond),
		kgo.SessionTimeout(3*time.Second),
		kgo.HeartbeatInterval(300*time.Millisecond),
		kgo.MetadataMinAge(100*time.Millisecond),
	)
}

func poll(session *kgo.GroupTransactSession) []*kgo.Record {
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	return session.PollRecords(ctx, batch).Records()
}

// Returns whether the transaction is committed.
func copyIn(session *kgo.GroupTransactSession, records []*kgo.Record, one try) (bool, error) {
	ctx, cancel := context.WithTimeout(context.Background(), copyPatience)
	defer cancel()
	if err := session.Begin(); err != nil {
		return false, err
	}
	written := kgo.AbortingFirstErrPromise(session.Client())
	for _, record := range records {
		value := fmt.Appendf(nil, "%s|%s", record.Value, one.mark)
		session.Produce(ctx, &kgo.Record{Key: record.Key, Value: value, Partition: record.Partition}, written.Promise())
	}
	if err := session.Client().Flush(ctx); err != nil {
		return false, err
	}
	time.Sleep(one.dawdle)
	failure := written.Err()
	committed, err := session.End(ctx, kgo.TransactionEndTry(failure == nil && !one.aborts))
	if err != nil {
		return false, err
	}
	if isFenced(failure) {
		return false, failure
	}
	return committed, nil
}

func isFenced(err error) bool {
	return errors.Is(err, kerr.ProducerFenced) || errors.Is(err, kerr.InvalidProducerEpoch)
}

func reason(err error) string {
	var told *kerr.Error
	if errors.As(err, &told) {
		return told.Message
	}
	return err.Error()
}

func runCopier(argument string) {
	var how copying
	if err := json.Unmarshal([]byte(argument), &how); err != nil {
		log.Fatal(err)
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	session, err := newSession(how)
	if err != nil {
		log.Fatal(err)
	}
	if err := copyAll(session, how); err != nil {
		tell("ended", map[string]any{"why": reason(err)})
	}
}

// Fences the former owner of the transactional id, once there is a server.
func begin(client *kgo.Client) error {
	ctx, cancel := context.WithTimeout(context.Background(), copyPatience)
	defer cancel()
	_, _, err := client.ProducerID(ctx)
	for errors.Is(err, syscall.ECONNREFUSED) && ctx.Err() == nil {
		time.Sleep(dawdle)
		_, _, err = client.ProducerID(ctx)
	}
	return err
}

// Copies until the client fails for good.
func copyAll(session *kgo.GroupTransactSession, how copying) error {
	if err := begin(session.Client()); err != nil {
		return err
	}
	tell("ready", map[string]any{})
	chance := rand.New(rand.NewPCG(how.Seed, 0))
	for number := 0; ; number++ {
		records := poll(session)
		for len(records) == 0 {
			records = poll(session)
		}
		one := nextTry(how, chance, number)
		committed, err := copyIn(session, records, one)
		if err != nil {
			return err
		}
		outcome := "aborted"
		if committed {
			outcome = "committed"
		}
		tell(outcome, map[string]any{"mark": one.mark})
	}
}
