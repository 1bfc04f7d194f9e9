import org.apache.logging.log4j.CloseableThreadContext;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.Logger;

/** Logs with Log4j 2, whose configuration sends to Sluice. */
public class Main {
  private static final Logger log = LogManager.getLogger("checkout.Payment");

  public static void main(String[] args) {
    log.debug("Connecting");
    try (var context = CloseableThreadContext.put("user", "ada")) {
      log.info("Order {} accepted", 4711);
    }
    log.warn("Slow answer: \"quoted\" \\ \u00e4");
    try {
      Integer.parseInt("x");
    } catch (NumberFormatException error) {
      log.fatal("Payment failed", error);
    }
    int count = args.length > 0 ? Integer.parseInt(args[0]) : 0;
    for (int number = 0; number < count; number += 1) {
      log.info("number {}", number);
    }
    LogManager.shutdown();
  }
}
