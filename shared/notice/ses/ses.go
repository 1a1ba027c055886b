// Package ses sends mails through Amazon SES, by version 2 of its API.
package ses

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/sesv2"
	"github.com/aws/aws-sdk-go-v2/service/sesv2/types"
	"github.com/aws/smithy-go"

	"gateway/shared/fault"
	"gateway/shared/notice"
)

// Mailer sends from one verified identity.
type Mailer struct {
	client   *sesv2.Client
	from     string
	identity string
}

// Options specifies who sends.
type Options struct {
	From string // an address of a verified identity
	// Identity is the ARN of that identity, which permissions may be bound to; "": the
	// identity of From in the account.
	Identity string
	Endpoint string // in place of the Region's; for tests
}

// New makes a Mailer. It makes no call. cfg without an HTTP client gets the SDK's
// own, which honors AWS_CA_BUNDLE.
func New(cfg aws.Config, o Options) *Mailer {
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = awshttp.NewBuildableClient()
	}
	client := sesv2.NewFromConfig(cfg, func(so *sesv2.Options) {
		if o.Endpoint != "" {
			so.BaseEndpoint = aws.String(o.Endpoint)
		}
	})
	return &Mailer{client, o.From, o.Identity}
}

// Send implements notice.Mailer. A final rejection by SES is an error with its code;
// throttles and outages are a 503 fault after the SDK's retries.
func (s *Mailer) Send(ctx context.Context, m notice.Mail) error {
	if err := m.Check(); err != nil {
		return err
	}
	in := &sesv2.SendEmailInput{
		FromEmailAddress: aws.String(s.from),
		Destination:      &types.Destination{ToAddresses: m.To},
		Content: &types.EmailContent{Simple: &types.Message{
			Subject: content(m.Subject), Body: &types.Body{Text: content(m.Text)},
		}},
	}
	if m.HTML != "" {
		in.Content.Simple.Body.Html = content(m.HTML)
	}
	if s.identity != "" {
		in.FromEmailAddressIdentityArn = aws.String(s.identity)
	}
	if _, err := s.client.SendEmail(ctx, in); err != nil {
		return failed(err)
	}
	return nil
}

func content(s string) *types.Content {
	return &types.Content{Data: aws.String(s), Charset: aws.String("UTF-8")}
}

// failed returns the code of an error, but not its text, which contains addresses.
func failed(err error) error {
	var api smithy.APIError
	var answer *awshttp.ResponseError
	if errors.As(err, &api) && errors.As(err, &answer) && answer.HTTPStatusCode() < 500 && answer.HTTPStatusCode() != http.StatusTooManyRequests {
		return fmt.Errorf("ses: the mail was rejected: %s", api.ErrorCode())
	}
	return fault.Unavailable(errors.New("ses: the mail could not be sent"))
}
