// Sends the records of log/slog to Sluice with the OpenTelemetry SDK. The exporter reads its address and headers from the environment.
package main

import (
	"context"
	"errors"
	"log"
	"os"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
)

func main() {
	ctx := context.Background()
	exporter, err := otlploghttp.New(ctx)
	if err != nil {
		log.Fatal(err)
	}
	service := os.Getenv("SERVICE")
	if service == "" {
		service = "checkout"
	}
	provider := sdklog.NewLoggerProvider(
		sdklog.WithResource(resource.NewSchemaless(
			attribute.String("service.name", service),
			attribute.String("deployment.environment.name", "production"),
		)),
		sdklog.WithProcessor(sdklog.NewBatchProcessor(exporter)),
	)
	logger := otelslog.NewLogger("payment", otelslog.WithLoggerProvider(provider))

	logger.Info("Order 4711 accepted", "order.id", 4711, "user.id", "ada")
	logger.Error("Payment failed", "error", errors.New("card expired"))

	// Sends what is left.
	if err := provider.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
}
