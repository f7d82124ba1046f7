import java.io.*;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs tools of Apache Kafka one after the other in one machine.
 *
 * A line in is a class and its arguments, each in base64, with spaces between; a line out is the exit code and, in base64, what
 * was printed. With its input it ends.
 */
public class Tools {
    private static class Ended extends RuntimeException {
        Ended() {
            super(null, null, false, false);
        }
    }

    private static final ByteArrayOutputStream printed = new ByteArrayOutputStream();
    private static Integer exitCode;
    private static int size;

    /** Some tools take whatever is thrown for an error, the end of themselves too: only the first word counts. */
    private static void end(int code) {
        System.out.flush();
        if (exitCode == null) {
            exitCode = code;
            size = printed.size();
        }
    }

    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        Exit.Procedure procedure = (code, message) -> { end(code); throw new Ended(); };
        Exit.setExitProcedure(procedure);
        Exit.setHaltProcedure(procedure);
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = in.readLine()) != null; ) {
            List<String> words = new ArrayList<>();
            for (String word : line.split(" "))
                words.add(new String(Base64.getDecoder().decode(word.substring(1)), StandardCharsets.UTF_8));
            printed.reset();
            exitCode = null;
            PrintStream paper = new PrintStream(printed, true);
            System.setOut(paper);
            System.setErr(paper);
            end(run(words.get(0), words.subList(1, words.size()).toArray(new String[0]), paper));
            byte[] text = Arrays.copyOf(printed.toByteArray(), size);
            answers.println(exitCode + " " + Base64.getEncoder().encodeToString(text));
            answers.flush();
        }
    }

    private static int run(String name, String[] arguments, PrintStream paper) throws Exception {
        Throwable[] thrown = new Throwable[1];
        // Scala's Console keeps the stream that it found first.
        try {
            scala.Console.withOut((OutputStream) paper, () -> {
                try {
                    Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
                } catch (InvocationTargetException error) {
                    thrown[0] = error.getCause();
                } catch (ReflectiveOperationException error) {
                    thrown[0] = error;
                }
                return null;
            });
        } catch (Throwable error) {
            thrown[0] = error;
        }
        if (thrown[0] == null || thrown[0] instanceof Ended) return 0;
        thrown[0].printStackTrace(paper);
        return 1;
    }
}
