// Package profiles configures AWS as its command line does: from the environment,
// profiles, single sign-on, roles of machines and web identities. A function
// needs none of that and does not link it; see onaws.Use.
package profiles

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
)

// Load is an onaws.Loader.
func Load(ctx context.Context, client *awshttp.BuildableClient) (aws.Config, error) {
	return config.LoadDefaultConfig(ctx, config.WithHTTPClient(client))
}
