package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"gateway/local/embedded"
	"gateway/shared/app"
	"gateway/shared/usage"
)

// stores are the stores of the process.
type stores struct {
	app.Backends
	Journal *usage.Journal
	close   func() error
}

// Close closes the open stores.
func (s *stores) Close() error { return s.close() }

// openStores opens the stores that the command line selects.
func openStores(ctx context.Context, o options) (*stores, error) {
	if err := os.MkdirAll(o.data, 0o700); err != nil {
		return nil, err
	}
	if o.store == "aws" {
		return openAWS(ctx, o)
	}
	s, err := embedded.Open(ctx, o.data, embedded.Options{Durable: o.durable, NoRing: o.noRing})
	if err != nil {
		return nil, err
	}
	return &stores{Backends: s.Backends, Journal: s.Journal, close: s.Close}, nil
}

// openAWS opens the stores on AWS, or on what AWS_ENDPOINT_URL names. Usage events wait in
// a journal in the folder, as they do in the container.
func openAWS(ctx context.Context, o options) (*stores, error) {
	b, err := aws.Backends(ctx)
	if err != nil {
		return nil, err
	}
	journal, err := usage.OpenJournal(filepath.Join(o.data, "journal"), usage.JournalOptions{Durable: o.durable, NoRing: o.noRing, Bucket: b.Bucket})
	if err != nil {
		return nil, err
	}
	return &stores{Backends: b, Journal: journal, close: func() error {
		return errors.Join(journal.Close(), b.Store.Close())
	}}, nil
}
