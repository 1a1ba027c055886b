// Package mails sends an installation's mails on AWS. It is separate so that only functions
// that send mails link the client of SES.
package mails

import (
	"context"
	"os"

	"gateway/shared/app/onaws"
	"gateway/shared/notice"
	"gateway/shared/notice/ses"
)

// FromEnvironment gives what sends mails; nil where no sender is named.
func FromEnvironment(ctx context.Context) (notice.Mailer, error) {
	from := os.Getenv(onaws.EnvMailFrom)
	if from == "" {
		return nil, nil
	}
	cfg, err := onaws.Config(ctx)
	if err != nil {
		return nil, err
	}
	return ses.New(cfg, ses.Options{From: from, Identity: os.Getenv(onaws.EnvMailIdentity)}), nil
}
