import java.util.*;
import java.util.function.Consumer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.*;

/** Operators that remember nothing. */
final class StatelessTopologies {
    static final Map<String, Consumer<StreamsBuilder>> ALL = new HashMap<>();

    static {
        ALL.put("filter", builder ->
            builder.stream("in", Texts.CONSUMED).filter((key, value) -> Texts.number(value) % 2 == 0).to("out"));
        ALL.put("filter_plain", builder ->
            builder.stream("in", Texts.CONSUMED).filter((key, value) -> value.length() == 2 && !value.equals("13")).to("out"));
        ALL.put("filter_not", builder ->
            builder.stream("in", Texts.CONSUMED).filterNot((key, value) -> Texts.number(value) % 2 == 0).to("out"));
        ALL.put("filter_by_key", builder ->
            builder.stream("in", Texts.CONSUMED).filter((key, value) -> "a".equals(key) || key == null).to("out"));
        ALL.put("map", builder ->
            builder.stream("in", Texts.CONSUMED).map((key, value) -> KeyValue.pair(value, key)).to("out"));
        ALL.put("map_values", builder ->
            builder.stream("in", Texts.CONSUMED).mapValues((key, value) -> value == null ? null : Texts.pair(value, key)).to("out"));
        ALL.put("map_values_plain", builder ->
            builder.stream("in", Texts.CONSUMED).mapValues(value -> value + "!" + value.length()).to("out"));
        ALL.put("flat_map", builder -> builder.stream("in", Texts.CONSUMED).flatMap((key, value) -> {
            List<KeyValue<String, String>> found = new ArrayList<>();
            for (int n = 0; n < Texts.number(value) % 3; n++) {
                found.add(KeyValue.pair("k" + n, Texts.pair(key, value)));
            }
            return found;
        }).to("out"));
        ALL.put("flat_map_values", builder ->
            builder.stream("in", Texts.CONSUMED).flatMapValues(StatelessTopologies::digits).to("out"));
        ALL.put("select_key", builder ->
            builder.stream("in", Texts.CONSUMED).selectKey((key, value) -> value == null ? null : Texts.group(value)).to("out"));
        ALL.put("branch", builder -> {
            Map<String, KStream<String, String>> ways = builder.stream("in", Texts.CONSUMED).split(Named.as("to-"))
                .branch((key, value) -> Texts.number(value) % 2 == 0, Branched.as("even"))
                .branch((key, value) -> Texts.number(value) % 3 == 0, Branched.as("third"))
                .noDefaultBranch();
            ways.get("to-even").to("even");
            ways.get("to-third").to("third");
        });
        ALL.put("split_with_default", builder -> {
            Map<String, KStream<String, String>> ways = builder.stream("in", Texts.CONSUMED).split(Named.as("to-"))
                .branch((key, value) -> Texts.number(value) > 60, Branched.as("big"))
                .branch((key, value) -> Texts.number(value) > 30, Branched.as("middle"))
                .defaultBranch(Branched.as("rest"));
            ways.forEach((name, stream) -> stream.to(name.substring("to-".length())));
        });
        ALL.put("merge", builder ->
            builder.stream("one", Texts.CONSUMED).mapValues(value -> Texts.pair("1", value))
                .merge(builder.stream("two", Texts.CONSUMED).mapValues(value -> Texts.pair("2", value))).to("out"));
        ALL.put("peek", builder ->
            builder.stream("in", Texts.CONSUMED).peek((key, value) -> { }).to("out"));
        ALL.put("branch_to_one_topic", builder -> {
            Map<String, KStream<String, String>> ways = ways(builder);
            ways.get("to-even").mapValues(value -> value + "e").to("out");
            ways.get("to-odd").mapValues(value -> value + "o").to("out");
        });
        ALL.put("branch_and_merge", builder -> {
            Map<String, KStream<String, String>> ways = ways(builder);
            ways.get("to-even").mapValues(value -> value + "e").merge(ways.get("to-odd")).to("out");
        });
        ALL.put("two_ways_to_one_topic", builder -> {
            KStream<String, String> read = builder.stream("in", Texts.CONSUMED);
            read.mapValues(value -> value + "x").to("out");
            read.mapValues(value -> value + "y").to("out");
        });
        ALL.put("repartition", builder ->
            builder.stream("in", Texts.CONSUMED).repartition(Repartitioned.<String, String>as("there").withNumberOfPartitions(1))
                .to("out"));
        ALL.put("chain_of_stateless", builder ->
            builder.stream("in", Texts.CONSUMED).filter((key, value) -> value != null).mapValues(value -> value + value)
                .selectKey((key, value) -> value.substring(0, 1)).filterNot((key, value) -> key.equals("3"))
                .flatMapValues(StatelessTopologies::digits).to("out"));
    }

    private StatelessTopologies() { }

    private static Map<String, KStream<String, String>> ways(StreamsBuilder builder) {
        return builder.stream("in", Texts.CONSUMED).split(Named.as("to-"))
            .branch((key, value) -> Texts.number(value) % 2 == 0, Branched.as("even"))
            .defaultBranch(Branched.as("odd"));
    }

    private static List<String> digits(String value) {
        return value == null ? List.of("none") : List.of(value.split(""));
    }
}
