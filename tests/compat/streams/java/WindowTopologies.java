import java.time.Duration;
import java.util.*;
import java.util.function.Consumer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.kstream.Suppressed.BufferConfig;
import org.apache.kafka.streams.state.*;

/** Aggregates of streams for each window apart; final results; and changes held back. */
final class WindowTopologies {
    static final Map<String, Consumer<StreamsBuilder>> ALL = new HashMap<>();

    private static final TimeWindows TUMBLING = TimeWindows.ofSizeAndGrace(ms(20), ms(15));
    private static final TimeWindows HOPPING = TimeWindows.ofSizeAndGrace(ms(30), ms(10)).advanceBy(ms(10));
    private static final TimeWindows UNEVEN = TimeWindows.ofSizeAndGrace(ms(25), ms(0)).advanceBy(ms(10));
    private static final SlidingWindows SLIDING = SlidingWindows.ofTimeDifferenceAndGrace(ms(20), ms(15));
    private static final SessionWindows SESSION = SessionWindows.ofInactivityGapAndGrace(ms(10), ms(15));
    // As long as windows are kept by default, one that closes late because time has made a leap is gone, and so is the
    // sliding window that a late record would begin from.
    private static final Duration KEPT = Duration.ofDays(1);

    static {
        ALL.put("tumbling_count", builder -> Texts.write(grouped(builder).windowedBy(TUMBLING).count()));
        ALL.put("tumbling_reduce", builder -> Texts.write(grouped(builder).windowedBy(TUMBLING).reduce(Texts::chain)));
        ALL.put("tumbling_without_grace", builder -> Texts.write(
            grouped(builder).windowedBy(TimeWindows.ofSizeWithNoGrace(ms(20))).count()));
        ALL.put("hopping_count", builder -> Texts.write(grouped(builder).windowedBy(HOPPING).count()));
        ALL.put("hopping_reduce", builder -> Texts.write(grouped(builder).windowedBy(HOPPING).reduce(Texts::chain)));
        ALL.put("hopping_uneven", builder -> Texts.write(grouped(builder).windowedBy(UNEVEN).count()));
        ALL.put("sliding_count", builder -> Texts.write(grouped(builder).windowedBy(SLIDING)
            .count(Materialized.<String, Long, WindowStore<Bytes, byte[]>>as("kept").withRetention(KEPT))));
        ALL.put("sliding_reduce", builder -> Texts.write(grouped(builder).windowedBy(SLIDING).reduce(Texts::chain, kept())));
        ALL.put("sliding_aggregate", builder -> Texts.write(
            grouped(builder).windowedBy(SLIDING).aggregate(() -> "", (key, value, soFar) -> Texts.chain(soFar, value), kept())));
        ALL.put("session_count", builder -> Texts.write(grouped(builder).windowedBy(SESSION).count()));
        ALL.put("session_reduce", builder -> Texts.write(grouped(builder).windowedBy(SESSION).reduce(Texts::chain)));
        ALL.put("session_aggregate", builder -> Texts.write(grouped(builder).windowedBy(SESSION).aggregate(
            () -> "", (key, value, soFar) -> Texts.chain(soFar, value), (key, one, other) -> Texts.merge(one, other))));
        ALL.put("tumbling_emit_on_close", builder -> Texts.write(grouped(builder).windowedBy(TUMBLING)
            .emitStrategy(EmitStrategy.onWindowClose()).reduce(Texts::chain, kept())));
        ALL.put("hopping_emit_on_close", builder -> Texts.write(grouped(builder).windowedBy(HOPPING)
            .emitStrategy(EmitStrategy.onWindowClose()).reduce(Texts::chain, kept())));
        ALL.put("sliding_emit_on_close", builder -> Texts.write(grouped(builder).windowedBy(SLIDING)
            .emitStrategy(EmitStrategy.onWindowClose()).reduce(Texts::chain, kept())));
        ALL.put("session_emit_on_close", builder -> Texts.write(grouped(builder).windowedBy(SESSION)
            .emitStrategy(EmitStrategy.onWindowClose()).reduce(Texts::chain)));
        ALL.put("suppress_until_window_closes", builder -> Texts.write(
            grouped(builder).windowedBy(TUMBLING).reduce(Texts::chain).suppress(closed())));
        ALL.put("suppress_hopping_until_window_closes", builder -> Texts.write(
            grouped(builder).windowedBy(HOPPING).reduce(Texts::chain).suppress(closed())));
        ALL.put("suppress_sessions_until_window_closes", builder -> Texts.write(
            grouped(builder).windowedBy(SESSION).reduce(Texts::chain).suppress(closed())));
        ALL.put("suppress_sliding_until_window_closes", builder -> Texts.write(grouped(builder)
            .windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(ms(20), ms(17)))
            .reduce(Texts::chain, kept()).suppress(closed())));
        ALL.put("suppress_until_time_limit", builder -> Texts.write(grouped(builder).count()
            .suppress(Suppressed.untilTimeLimit(ms(25), BufferConfig.unbounded()))));
        ALL.put("suppress_until_time_limit_or_full", builder -> Texts.write(grouped(builder).count()
            .suppress(Suppressed.untilTimeLimit(ms(60), BufferConfig.maxRecords(3)))));
        ALL.put("suppress_a_table", builder -> Texts.write(builder.table("in", Texts.CONSUMED)
            .suppress(Suppressed.untilTimeLimit(ms(25), BufferConfig.unbounded()))));
        ALL.put("windows_counted_again", builder -> Texts.write(grouped(builder).windowedBy(TUMBLING).count()
            .toStream().map((key, count) -> KeyValue.pair("w" + key.window().start() % 60, "n" + count))
            .groupByKey().reduce(Texts::chain)));
    }

    private WindowTopologies() { }

    private static Duration ms(long span) {
        return Duration.ofMillis(span);
    }

    private static KGroupedStream<String, String> grouped(StreamsBuilder builder) {
        return AggregateTopologies.grouped(builder, "in");
    }

    private static Materialized<String, String, WindowStore<Bytes, byte[]>> kept() {
        return Materialized.<String, String, WindowStore<Bytes, byte[]>>as("kept").withRetention(KEPT);
    }

    private static Suppressed<Windowed<?>> closed() {
        return Suppressed.untilWindowCloses(BufferConfig.unbounded());
    }
}
