import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/** Counts words, exactly once: "Counting BOOTSTRAP FOLDER INPUT OUTPUT". It runs until it is killed. */
public final class Counting {
    public static void main(String[] arguments) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, "counting");
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, arguments[1]);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        settings.put(StreamsConfig.REPLICATION_FACTOR_CONFIG, 1);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        settings.put(StreamsConfig.consumerPrefix("session.timeout.ms"), 6000);
        settings.put(StreamsConfig.consumerPrefix("heartbeat.interval.ms"), 500);
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        settings.put(StreamsConfig.producerPrefix("transaction.timeout.ms"), 10000);
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        StreamsBuilder builder = new StreamsBuilder();
        builder.<String, String>stream(arguments[2])
            .groupBy((key, word) -> word) // through a repartition topic
            .count(Materialized.as("counts")) // with a changelog
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(arguments[3], Produced.with(Serdes.String(), Serdes.String()));
        KafkaStreams streams = new KafkaStreams(builder.build(), settings);
        streams.setUncaughtExceptionHandler(error -> {
            System.err.println("a thread is replaced, for " + error);
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.start();
    }
}
