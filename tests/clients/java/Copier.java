// A copier with Kafka's own clients; see tests/clients/transactions/workers/reports.py.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.OutOfOrderSequenceException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Copier {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL = Duration.ofMillis(200);
    private static final int BATCH = 20;
    private static final int ABORTS = 5;
    private static final int DAWDLE_MS = 60;
    private static final int PATIENCE_MS = 45_000;

    private static PrintStream out;

    private final String input;
    private final String output;
    private final String id;
    private final long seed;
    private final Random chance;
    private final KafkaConsumer<byte[], byte[]> consumer;
    private final KafkaProducer<byte[], byte[]> producer;

    public static void main(String[] args) throws Exception {
        out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err); // for the log
        Thread waiting = new Thread(() -> {
            try {
                System.in.read();
            } catch (Exception closed) {
                // a failure also means the end
            }
            Runtime.getRuntime().halt(0);
        });
        waiting.setDaemon(true);
        waiting.start();
        new Copier(JSON.readTree(args[0])).run();
    }

    private Copier(JsonNode how) {
        input = how.get("input").asText();
        output = how.get("output").asText();
        id = how.get("id").asText();
        seed = how.get("seed").asLong();
        chance = new Random(seed);
        Map<String, Object> both = Map.of(
                "bootstrap.servers", how.get("bootstrap").asText(),
                "reconnect.backoff.ms", 20,
                "reconnect.backoff.max.ms", 200);
        Map<String, Object> reading = new HashMap<>(both);
        reading.put("group.id", how.get("group").asText());
        reading.put("isolation.level", "read_committed");
        reading.put("enable.auto.commit", false);
        reading.put("auto.offset.reset", "earliest");
        reading.put("max.poll.records", BATCH);
        reading.put("session.timeout.ms", 3_000);
        reading.put("heartbeat.interval.ms", 300);
        consumer = new KafkaConsumer<>(reading, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        Map<String, Object> writing = new HashMap<>(both);
        writing.put("transactional.id", id);
        writing.put("transaction.timeout.ms", 20_000);
        writing.put("max.block.ms", PATIENCE_MS);
        producer = new KafkaProducer<>(writing, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private void run() throws Exception {
        try {
            producer.initTransactions();
            tell("ready", Map.of());
            consumer.subscribe(List.of(input));
            for (int number = 0; ; number++) {
                copy(number, polled());
            }
        } catch (KafkaException error) {
            error.printStackTrace();
            tell("ended", Map.of("why", named(error)));
        }
        consumer.close();
        Runtime.getRuntime().halt(0); // the next life aborts an open transaction
    }

    private static String named(Throwable error) {
        String name = error.getClass().getSimpleName();
        return error.getCause() == null ? name : name + " by " + named(error.getCause());
    }

    private ConsumerRecords<byte[], byte[]> polled() {
        ConsumerRecords<byte[], byte[]> polled = consumer.poll(POLL);
        while (polled.isEmpty()) {
            polled = consumer.poll(POLL);
        }
        return polled;
    }

    private void copy(int number, ConsumerRecords<byte[], byte[]> polled) throws Exception {
        boolean aborting = chance.nextInt(ABORTS) == 0;
        String mark = id + "/" + seed + "/" + number + "/" + (aborting ? "abort" : "commit");
        producer.beginTransaction();
        try {
            write(mark, polled);
            if (aborting) {
                producer.flush(); // so that there is something to be left out
            }
            Thread.sleep(chance.nextInt(DAWDLE_MS));
            if (aborting) {
                abort(mark, polled);
                return;
            }
            producer.sendOffsetsToTransaction(behind(polled), consumer.groupMetadata());
            producer.commitTransaction();
            tell("committed", Map.of("mark", mark));
        } catch (ProducerFencedException | InvalidProducerEpochException | OutOfOrderSequenceException
                | TimeoutException fatal) {
            throw fatal;
        } catch (KafkaException error) {
            error.printStackTrace();
            abort(mark, polled);
        }
    }

    private void write(String mark, ConsumerRecords<byte[], byte[]> polled) {
        for (ConsumerRecord<byte[], byte[]> record : polled) {
            byte[] value = (new String(record.value(), StandardCharsets.UTF_8) + "|" + mark)
                    .getBytes(StandardCharsets.UTF_8);
            producer.send(new ProducerRecord<>(output, record.partition(), record.key(), value));
        }
    }

    private void abort(String mark, ConsumerRecords<byte[], byte[]> polled) throws Exception {
        producer.abortTransaction();
        tell("aborted", Map.of("mark", mark));
        for (TopicPartition partition : polled.partitions()) {
            consumer.seek(partition, polled.records(partition).get(0).offset());
        }
    }

    private static Map<TopicPartition, OffsetAndMetadata> behind(ConsumerRecords<byte[], byte[]> polled) {
        Map<TopicPartition, OffsetAndMetadata> found = new HashMap<>();
        for (TopicPartition partition : polled.partitions()) {
            List<ConsumerRecord<byte[], byte[]>> records = polled.records(partition);
            found.put(partition, new OffsetAndMetadata(records.get(records.size() - 1).offset() + 1));
        }
        return found;
    }

    private static void tell(String event, Map<String, Object> of) throws Exception {
        Map<String, Object> line = new HashMap<>(of);
        line.put("told", event);
        out.println(JSON.writeValueAsString(line));
    }
}
