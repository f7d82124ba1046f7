import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.time.Instant;
import java.util.*;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.test.TestRecord;

/**
 * Runs topologies of Kafka Streams on given records.
 *
 * Each line of its input names a topology, the stores it is to use (memory or rocksdb), a file of records, and a file to
 * write what comes out; they are separated by tabs. The answer is a line: "done", or "failed" and why. A record is a line
 * of JSON: [topic, key, value, timestamp].
 */
public class Judge {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String NAME = "judge";

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            String[] asked = line.split("\t");
            try {
                run(asked[0], asked[1], Path.of(asked[2]), Path.of(asked[3]));
                System.out.println("done");
            } catch (Exception failure) {
                failure.printStackTrace();
                System.out.println("failed " + failure.toString().replace('\n', ' '));
            }
        }
    }

    private static void run(String name, String stores, Path records, Path results) throws IOException {
        StreamsBuilder builder = new StreamsBuilder();
        Topologies.named(name).accept(builder);
        Properties settings = settings(stores);
        Topology topology = builder.build(settings);
        // Nothing waits for the clock on the wall, which stands still.
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, settings, Instant.EPOCH)) {
            Map<String, TestInputTopic<String, String>> topics = new HashMap<>();
            try (BufferedReader lines = Files.newBufferedReader(records)) {
                for (String line; (line = lines.readLine()) != null; ) {
                    JsonNode record = JSON.readTree(line);
                    topics.computeIfAbsent(record.get(0).textValue(), topic ->
                            driver.createInputTopic(topic, new StringSerializer(), new StringSerializer()))
                        .pipeInput(record.get(1).textValue(), record.get(2).textValue(), record.get(3).longValue());
                }
            }
            try (BufferedWriter out = Files.newBufferedWriter(results)) {
                for (String topic : new TreeSet<>(driver.producedTopicNames())) {
                    if (!topic.startsWith(NAME + "-")) {
                        write(driver, topic, out);
                    }
                }
            }
        }
    }

    private static void write(TopologyTestDriver driver, String topic, Writer out) throws IOException {
        List<TestRecord<String, String>> records =
            driver.createOutputTopic(topic, new StringDeserializer(), new StringDeserializer()).readRecordsToList();
        for (TestRecord<String, String> record : records) {
            Object[] line = {topic, record.key(), record.value(), record.timestamp()};
            out.write(JSON.writeValueAsString(line));
            out.write('\n');
        }
    }

    private static Properties settings(String stores) {
        Properties found = new Properties();
        found.put(StreamsConfig.APPLICATION_ID_CONFIG, NAME);
        found.put(StreamsConfig.STATE_DIR_CONFIG, System.getProperty("java.io.tmpdir"));
        found.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        found.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        // Every update is passed on.
        found.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        found.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, stores.equals("rocksdb")
            ? BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers.class
            : BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers.class);
        return found;
    }
}
