// Emits log records with OpenTelemetry's exporter for Go: SERVICE and COUNT are arguments, the rest is in OTEL_… variables.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	"go.opentelemetry.io/otel/log"
	sdk "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
)

func main() {
	if err := emit(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func emit(service, countText string) error {
	ctx := context.Background()
	count, err := strconv.Atoi(countText)
	if err != nil {
		return err
	}
	exporter, err := otlploghttp.New(ctx)
	if err != nil {
		return err
	}
	processor := sdk.NewBatchProcessor(exporter, sdk.WithExportMaxBatchSize(250), sdk.WithMaxQueueSize(2*count))
	provider := sdk.NewLoggerProvider(
		sdk.WithProcessor(processor),
		sdk.WithResource(resource.NewSchemaless(attribute.String("service.name", service))),
	)
	logger := provider.Logger("checkout")
	start := time.Date(2026, 11, 20, 0, 0, 0, 123456789, time.UTC)
	for i := range count {
		var record log.Record
		record.SetTimestamp(start.Add(time.Duration(i) * time.Millisecond))
		record.SetSeverity(log.SeverityInfo2)
		record.SetBody(attribute.StringValue(fmt.Sprintf("paid %d é", i)))
		record.AddAttributes(attribute.Int("cart", i), attribute.Float64("total", 9.99), attribute.ByteSlice("raw", []byte{1, 2}))
		logger.Emit(ctx, record)
	}
	return provider.Shutdown(ctx)
}
