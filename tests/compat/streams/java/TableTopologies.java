import java.util.*;
import java.util.function.Consumer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.KeyValueStore;

/** Tables: what is made of their rows, joins of two of them, and aggregates of their rows by other keys. */
final class TableTopologies {
    static final Map<String, Consumer<StreamsBuilder>> ALL = new HashMap<>();

    static {
        ALL.put("table", builder -> Texts.write(table(builder, "in")));
        ALL.put("to_table", builder -> Texts.write(builder.stream("in", Texts.CONSUMED).toTable()));
        ALL.put("to_table_by_another_key", builder -> Texts.write(
            builder.stream("in", Texts.CONSUMED).selectKey((key, value) -> value == null ? key : Texts.group(value)).toTable()));
        ALL.put("table_filter", builder -> Texts.write(kept(builder).filter((key, value) -> Texts.number(value) % 2 == 0)));
        ALL.put("table_filter_not", builder -> Texts.write(
            kept(builder).filterNot((key, value) -> Texts.number(value) % 2 == 0)));
        ALL.put("table_map_values", builder -> Texts.write(kept(builder).mapValues((key, value) -> value + key)));
        ALL.put("table_filter_and_map_values", builder -> Texts.write(kept(builder)
            .filter((key, value) -> Texts.number(value) % 3 > 0).mapValues(value -> value + "!")));
        ALL.put("filtered_count", builder -> Texts.write(
            AggregateTopologies.grouped(builder, "in").count().filter((key, count) -> count % 3 == 2)));
        ALL.put("join_tables", builder -> Texts.write(left(builder).join(right(builder), Texts::pair)));
        ALL.put("left_join_tables", builder -> Texts.write(left(builder).leftJoin(right(builder), Texts::pair)));
        ALL.put("outer_join_tables", builder -> Texts.write(left(builder).outerJoin(right(builder), Texts::pair)));
        ALL.put("join_of_joined_tables", builder -> Texts.write(
            left(builder).join(right(builder), Texts::pair).leftJoin(table(builder, "third"), Texts::pair)));
        ALL.put("join_by_foreign_key", builder -> Texts.write(
            left(builder).join(right(builder), (String value) -> Texts.reference(value), Texts::pair)));
        ALL.put("left_join_by_foreign_key", builder -> Texts.write(
            left(builder).leftJoin(right(builder), (String value) -> Texts.reference(value), Texts::pair)));
        ALL.put("table_group_by_and_count", builder -> Texts.write(regrouped(builder).count()));
        ALL.put("table_group_by_and_reduce", builder -> Texts.write(regrouped(builder)
            .reduce((soFar, value) -> Texts.chain(soFar, "+" + value), (soFar, value) -> Texts.chain(soFar, "-" + value))));
        ALL.put("table_group_by_and_aggregate", builder -> Texts.write(regrouped(builder).aggregate(() -> "",
            (key, value, soFar) -> Texts.chain(soFar, "+" + value), (key, value, soFar) -> Texts.chain(soFar, "-" + value))));
        ALL.put("joined_tables_grouped", builder -> Texts.write(left(builder).join(right(builder), Texts::pair)
            .groupBy((key, value) -> KeyValue.pair("g" + value.length(), value))
            .aggregate(() -> "", (key, value, soFar) -> Texts.chain(soFar, "+" + value),
                (key, value, soFar) -> Texts.chain(soFar, "-" + value))));
    }

    private TableTopologies() { }

    private static KTable<String, String> table(StreamsBuilder builder, String topic) {
        return builder.table(topic, Texts.CONSUMED);
    }

    /** A table that keeps its rows, so that a row which was never shown is not deleted either. */
    private static KTable<String, String> kept(StreamsBuilder builder) {
        return builder.table("in", Texts.CONSUMED, Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("kept")
            .withKeySerde(Serdes.String()).withValueSerde(Serdes.String()));
    }

    private static KTable<String, String> left(StreamsBuilder builder) {
        return table(builder, "left");
    }

    private static KTable<String, String> right(StreamsBuilder builder) {
        return table(builder, "right");
    }

    private static KGroupedTable<String, String> regrouped(StreamsBuilder builder) {
        return table(builder, "in").groupBy((key, value) -> KeyValue.pair(Texts.group(value), value + key));
    }
}
