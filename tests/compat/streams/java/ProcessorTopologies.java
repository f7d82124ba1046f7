import java.time.Duration;
import java.util.*;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.processor.Cancellable;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.*;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.*;

/** Processors with stores, and with timers by stream time. */
final class ProcessorTopologies {
    static final Map<String, Consumer<StreamsBuilder>> ALL = new HashMap<>();

    static {
        ALL.put("processor_with_a_store", builder -> process(builder, Rising::new));
        ALL.put("processor_with_a_timer", builder -> process(builder, Totals::new));
        ALL.put("processor_that_cancels", builder -> process(builder, ThreeTimes::new));
        ALL.put("processor_that_schedules", builder -> process(builder, Reminder::new));
        ALL.put("first_of_each_key", builder -> process(builder, First::new));
        ALL.put("first_within_a_span", builder -> process(builder, FirstWithin::new));
        ALL.put("processor_of_values", builder -> {
            builder.addStateStore(store());
            builder.stream("in", Texts.CONSUMED).processValues(() -> new FixedKeyProcessor<String, String, String>() {
                private FixedKeyProcessorContext<String, String> context;
                private KeyValueStore<String, String> rows;

                @Override
                public void init(FixedKeyProcessorContext<String, String> context) {
                    this.context = context;
                    rows = context.getStateStore("rows");
                }

                @Override
                public void process(FixedKeyRecord<String, String> record) {
                    if (record.key() != null) {
                        context.forward(record.withValue(Texts.pair(rows.get(record.key()), record.value())));
                        rows.put(record.key(), record.value());
                    }
                }
            }, "rows").to("out");
        });
    }

    private ProcessorTopologies() { }

    private static void process(StreamsBuilder builder, Supplier<Processor<String, String, String, String>> make) {
        builder.addStateStore(store());
        builder.stream("in", Texts.CONSUMED).process(make::get, "rows").to("out");
    }

    private static StoreBuilder<KeyValueStore<String, String>> store() {
        return Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("rows"), Serdes.String(), Serdes.String());
    }

    /** What processors share: a context, and a store of texts. */
    private abstract static class Keeping implements Processor<String, String, String, String> {
        ProcessorContext<String, String> context;
        KeyValueStore<String, String> rows;

        @Override
        public void init(ProcessorContext<String, String> context) {
            this.context = context;
            rows = context.getStateStore("rows");
        }

        Cancellable every(long span, java.util.function.LongConsumer call) {
            return context.schedule(Duration.ofMillis(span), PunctuationType.STREAM_TIME, call::accept);
        }
    }

    /** Forwards a value when it is higher than the one before it. */
    private static final class Rising extends Keeping {
        @Override
        public void process(Record<String, String> record) {
            if (record.key() == null || record.value() == null) {
                return;
            }
            String before = rows.get(record.key());
            if (before != null && Texts.number(record.value()) > Texts.number(before)) {
                context.forward(record.withValue(before + "<" + record.value()));
            }
            rows.put(record.key(), record.value());
        }
    }

    /** Counts each key, and tells all counts every 25 ms of stream time. */
    private static final class Totals extends Keeping {
        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            every(25, this::tell);
        }

        @Override
        public void process(Record<String, String> record) {
            String key = String.valueOf(record.key());
            String before = rows.get(key);
            rows.put(key, String.valueOf(before == null ? 1 : Integer.parseInt(before) + 1));
        }

        private void tell(long time) {
            List<KeyValue<String, String>> all = new ArrayList<>();
            try (KeyValueIterator<String, String> entries = rows.all()) {
                entries.forEachRemaining(all::add);
            }
            for (KeyValue<String, String> each : all) {
                context.forward(new Record<>(each.key, each.value + "@" + time, time));
                if (Integer.parseInt(each.value) > 5) {
                    rows.delete(each.key);
                }
            }
        }
    }

    /** Tells the time three times, and then no more. */
    private static final class ThreeTimes extends Keeping {
        private Cancellable timer;

        @Override
        public void init(ProcessorContext<String, String> context) {
            super.init(context);
            timer = every(10, this::tell);
        }

        @Override
        public void process(Record<String, String> record) {
        }

        private void tell(long time) {
            String before = rows.get("calls");
            int calls = before == null ? 1 : Integer.parseInt(before) + 1;
            rows.put("calls", String.valueOf(calls));
            context.forward(new Record<>("call", calls + "@" + time, time));
            if (calls == 3) {
                timer.cancel();
            }
        }
    }

    /** Schedules, with every seventh record, a timer that is called twice. */
    private static final class Reminder extends Keeping {
        private int records;

        @Override
        public void process(Record<String, String> record) {
            records++;
            if (records % 7 != 0) {
                return;
            }
            String name = "r" + records;
            int[] calls = {0};
            Cancellable[] timer = {null};
            timer[0] = every(40, time -> {
                context.forward(new Record<>(name, "@" + time, time));
                if (++calls[0] == 2) {
                    timer[0].cancel();
                }
            });
        }
    }

    /** Forwards the first record of each key and value. */
    private static final class First extends Keeping {
        @Override
        public void process(Record<String, String> record) {
            if (record.key() != null && rows.putIfAbsent(record.key() + record.value(), "") == null) {
                context.forward(record);
            }
        }
    }

    /** Forwards a record unless one of its key has been forwarded whose time is at most 20 ms away. */
    private static final class FirstWithin extends Keeping {
        @Override
        public void process(Record<String, String> record) {
            if (record.key() == null) {
                return;
            }
            String before = rows.get(record.key());
            List<String> passed = new ArrayList<>(before == null ? List.of() : List.of(before.split(",")));
            for (String each : passed) {
                if (Math.abs(record.timestamp() - Long.parseLong(each)) <= 20) {
                    return;
                }
            }
            passed.add(String.valueOf(record.timestamp()));
            // Of what is long ago nothing comes any more.
            rows.put(record.key(), String.join(",", passed.subList(Math.max(0, passed.size() - 40), passed.size())));
            context.forward(record);
        }
    }
}
