// Sends the records of log/slog to Sluice with the OpenTelemetry SDK. The exporter reads its address and headers from the environment.
package main

import (
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"time"

	"go.opentelemetry.io/contrib/bridges/otelslog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlplog/otlploghttp"
	sdklog "go.opentelemetry.io/otel/sdk/log"
	"go.opentelemetry.io/otel/sdk/resource"
)

// retried makes the exporter retry if there is no response, as it does after 503. Without it, the records of the request are lost.
type retried struct{ http.RoundTripper }

func (transport retried) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := transport.RoundTripper.RoundTrip(request)
	if err == nil {
		return response, nil
	}
	return &http.Response{
		StatusCode: http.StatusServiceUnavailable,
		Status:     err.Error(),
		Body:       http.NoBody,
		Request:    request,
	}, nil
}

func main() {
	ctx := context.Background()
	client := &http.Client{Transport: retried{http.DefaultTransport}, Timeout: 10 * time.Second}
	exporter, err := otlploghttp.New(ctx, otlploghttp.WithHTTPClient(client), otlploghttp.WithRetry(otlploghttp.RetryConfig{
		Enabled:         true,
		InitialInterval: time.Second,
		MaxInterval:     5 * time.Second,
		MaxElapsedTime:  5 * time.Minute,
	}))
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
		sdklog.WithProcessor(sdklog.NewBatchProcessor(
			exporter,
			sdklog.WithExportTimeout(5*time.Minute),
			sdklog.WithMaxQueueSize(10_000),
		)),
	)
	logger := otelslog.NewLogger("payment", otelslog.WithLoggerProvider(provider))

	logger.Info("Order 4711 accepted", "order.id", 4711, "user.id", "ada")
	logger.Error("Payment failed", "error", errors.New("card expired"))

	// Sends what is left.
	if err := provider.Shutdown(ctx); err != nil {
		log.Fatal(err)
	}
}
