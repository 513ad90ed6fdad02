// Produces so many records in transactions of so many each, and prints how long that took.
//
// The settings are those that Kafka's producer comes with. A first transaction, which has to find everything, is not in
// the time.

import java.util.Properties;
import java.util.Random;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Transact {
    private static final int VALUES = 10_000;

    public static void main(String[] args) {
        String topic = args[1];
        int partitions = Integer.parseInt(args[2]);
        byte[][] values = values(Integer.parseInt(args[3]));
        int count = Integer.parseInt(args[4]);
        int each = Integer.parseInt(args[5]);
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(settings(args[0]))) {
            producer.initTransactions();
            transact(producer, topic, partitions, values, 0, each);
            long began = System.nanoTime();
            for (int start = 0; start < count; start += each) {
                transact(producer, topic, partitions, values, start, Math.min(count, start + each));
            }
            System.out.println(count + " records, " + (System.nanoTime() - began) + " ns");
        }
    }

    private static void transact(
            KafkaProducer<byte[], byte[]> producer, String topic, int partitions, byte[][] values, int start, int end) {
        producer.beginTransaction();
        for (int number = start; number < end; number++) {
            producer.send(new ProducerRecord<>(topic, number % partitions, null, values[number % VALUES]));
        }
        producer.commitTransaction();
    }

    private static byte[][] values(int size) {
        byte[][] values = new byte[VALUES][size];
        Random random = new Random(1);
        for (byte[] value : values) {
            random.nextBytes(value);
        }
        return values;
    }

    private static Properties settings(String bootstrap) {
        Properties settings = new Properties();
        settings.put(ProducerConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap);
        settings.put(ProducerConfig.KEY_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class.getName());
        settings.put(ProducerConfig.VALUE_SERIALIZER_CLASS_CONFIG, ByteArraySerializer.class.getName());
        settings.put(ProducerConfig.TRANSACTIONAL_ID_CONFIG, "transact");
        return settings;
    }
}
