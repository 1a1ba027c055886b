package onaws

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
)

// idleConnections is how many connections to one service wait for use. One
// process has few requests under way.
const idleConnections = 64

// Loader makes AWS's configuration; the client is that of its calls.
type Loader func(context.Context, *awshttp.BuildableClient) (aws.Config, error)

// load is the Loader of this process.
var load Loader = fromEnvironment

// Use sets how this process finds its credentials and its Region, before it loads any. Without
// it both come from the environment, as in every function.
func Use(l Loader) { load = l }

// Config is AWS's configuration with one HTTP client for all services, which
// honours AWS_CA_BUNDLE.
func Config(ctx context.Context) (aws.Config, error) {
	client := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost = idleConnections
		t.IdleConnTimeout = 50 * time.Second
	})
	cfg, err := load(ctx, client)
	if err != nil {
		return cfg, Advise(fmt.Errorf("onaws: %w", err))
	}
	if cfg.Region == "" {
		return cfg, errors.New("onaws: AWS_REGION must be set to the region of the installation, such as eu-west-1")
	}
	if cfg.HTTPClient != nil {
		cfg.HTTPClient = counted{cfg.HTTPClient}
	}
	return cfg, nil
}
