import java.io.*;
import java.time.Duration;
import java.util.*;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/**
 * Counts the words of one topic into another, exactly once, in as many instances as it is told to.
 *
 * Arguments: bootstrap servers, application, input, output, directory. Reads "start NAME PROTOCOL", "stop NAME" and "tasks"
 * from its input, and answers each with a line; with its input it ends, and so do its instances.
 */
public class WordCount {
    private static final Duration PATIENCE = Duration.ofSeconds(20);
    private static String[] given;
    private static final Map<String, KafkaStreams> instances = new TreeMap<>();

    public static void main(String[] args) throws Exception {
        given = args;
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ");
            switch (words[0]) {
                case "start" -> start(words[1], words[2]);
                case "stop" -> System.out.println(stop(instances.remove(words[1])));
                default -> System.out.println(tasks());
            }
        }
        instances.values().forEach(WordCount::stop);
    }

    private static void start(String name, String protocol) {
        KafkaStreams streams = new KafkaStreams(topology(), settings(name, protocol));
        instances.put(name, streams);
        streams.start();
        System.out.println("started");
    }

    private static boolean stop(KafkaStreams streams) {
        return streams.close(CloseOptions.groupMembershipOperation(CloseOptions.GroupMembershipOperation.LEAVE_GROUP)
            .withTimeout(PATIENCE));
    }

    /** Every instance with its state and its active tasks: "a=RUNNING:0_0,1_0 b=REBALANCING:". */
    private static String tasks() {
        return instances.entrySet().stream().map(each -> {
            String active = each.getValue().metadataForLocalThreads().stream()
                .flatMap(thread -> thread.activeTasks().stream())
                .map(task -> task.taskId().toString()).sorted().collect(Collectors.joining(","));
            return each.getKey() + "=" + each.getValue().state() + ":" + active;
        }).collect(Collectors.joining(" "));
    }

    private static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        Materialized<String, Long, KeyValueStore<Bytes, byte[]>> store =
            Materialized.as(Stores.inMemoryKeyValueStore("counts"));
        builder.stream(given[2], Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(text -> Arrays.asList(text.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(store.withKeySerde(Serdes.String()).withValueSerde(Serdes.Long()))
            .toStream()
            .to(given[3], Produced.with(Serdes.String(), Serdes.Long()));
        return builder.build();
    }

    private static Properties settings(String name, String protocol) {
        Properties found = new Properties();
        found.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, given[0]);
        found.put(StreamsConfig.APPLICATION_ID_CONFIG, given[1]);
        found.put(StreamsConfig.CLIENT_ID_CONFIG, name);
        found.put(StreamsConfig.GROUP_PROTOCOL_CONFIG, protocol);
        found.put(StreamsConfig.STATE_DIR_CONFIG, given[4] + "/" + name);
        found.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        // Every count is passed on, so that one too many or too few is seen.
        found.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        found.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        // What a killed instance leaves open is aborted once this is over, since the next one has another id.
        found.put(StreamsConfig.producerPrefix(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG), 2_000);
        return found;
    }
}
