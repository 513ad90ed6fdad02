// Reads so many records of a topic from its beginning, as fast as it can, and prints how long that took.
//
// Kafka's own kafka-consumer-perf-test does the same in a consumer group, which kgateway has none of yet. This one is
// told its partitions, and is set up as that one is: fetches of 1 MB a partition, a socket buffer of 2 MB, no CRCs.

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Consume {
    private static final long PATIENCE_NS = 60_000_000_000L;

    public static void main(String[] args) {
        String topic = args[1];
        int partitionCount = Integer.parseInt(args[2]);
        long wanted = Long.parseLong(args[3]);
        List<TopicPartition> partitions = new ArrayList<>();
        for (int index = 0; index < partitionCount; index++) {
            partitions.add(new TopicPartition(topic, index));
        }
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings(args[0]))) {
            long began = System.nanoTime();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            long count = 0;
            long bytes = 0;
            long last = began;
            while (count < wanted) {
                ConsumerRecords<byte[], byte[]> polled = consumer.poll(Duration.ofMillis(100));
                for (ConsumerRecord<byte[], byte[]> record : polled) {
                    bytes += record.value().length;
                }
                count += polled.count();
                long now = System.nanoTime();
                if (!polled.isEmpty()) {
                    last = now;
                } else if (now - last > PATIENCE_NS) {
                    throw new IllegalStateException("no more than " + count + " records came");
                }
            }
            System.out.println(count + " records, " + bytes + " bytes, " + (last - began) + " ns");
        }
    }

    private static Properties settings(String bootstrap) {
        Properties settings = new Properties();
        settings.put(ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class.getName());
        settings.put(ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class.getName());
        settings.put(ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, "false");
        settings.put(ConsumerConfig.MAX_PARTITION_FETCH_BYTES_CONFIG, "1048576");
        settings.put(ConsumerConfig.RECEIVE_BUFFER_CONFIG, "2097152");
        settings.put(ConsumerConfig.CHECK_CRCS_CONFIG, "false");
        return settings;
    }
}
