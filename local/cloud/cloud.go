package cloud

import (
	"context"

	"gateway/shared/app"
	"gateway/shared/app/onaws"
	"gateway/shared/app/onaws/profiles"
)

// Side provides the AWS parts of the local gateway.
type Side struct{}

// Configure makes the process find its credentials as AWS's command line does.
func (Side) Configure() { onaws.Use(profiles.Load) }

// Advise puts advice in front of an error of AWS.
func (Side) Advise(err error) error { return onaws.Advise(err) }

// Backends returns the backends of a gateway that writes usage events to a journal, like the
// container.
func (Side) Backends(ctx context.Context) (app.Backends, error) {
	if err := prepareEndpoint(ctx); err != nil {
		return app.Backends{}, err
	}
	return onaws.Backends(ctx, onaws.Bucket, onaws.AuditQueue, onaws.Keys)
}

// Core returns the core of a gateway that serves requests by functions.
func (Side) Core(ctx context.Context) (*app.Core, error) {
	if err := prepareEndpoint(ctx); err != nil {
		return nil, err
	}
	in, err := onaws.Open(ctx, onaws.Bucket, onaws.AuditQueue, onaws.UsageQueue, onaws.Keys)
	if err != nil {
		return nil, err
	}
	return in.Core, nil
}
