package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"gateway/local/source"
	"gateway/shared/app/onaws"
	"gateway/shared/store/dynamo/emulator"
	"gateway/shared/testkit/standin"
)

// StandIn starts AWS emulators unless the environment selects an AWS, by an endpoint or by the
// name of a resource. The emulators lose their data when the process ends, so this run's
// journals are in a temporary folder: StandIn returns it, or "" without emulators. end stops
// the emulators and deletes the folder.
func (Side) StandIn(ctx context.Context, log io.Writer) (data string, end func() error, err error) {
	if elsewhere() || named() {
		return "", func() error { return nil }, nil
	}
	root, err := source.Root()
	if err != nil {
		return "", nil, err
	}
	s, err := standin.Start(ctx, root)
	if errors.Is(err, emulator.ErrMissing) {
		return "", nil, fmt.Errorf("no AWS_ENDPOINT_URL is set, and the stand-ins of AWS cannot start: %w\n(or set AWS_ENDPOINT_URL to an AWS-compatible endpoint)", err)
	}
	if err != nil {
		return "", nil, err
	}
	// A profile of the user would take precedence over the access key of the emulators.
	for _, name := range []string{"AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION"} {
		err = errors.Join(err, os.Unsetenv(name))
	}
	err = errors.Join(err, standin.Set(s.Endpoints(), s.Named(), standin.Identity("local")))
	if err != nil {
		s.Close()
		return "", nil, err
	}
	if data, err = os.MkdirTemp("", "gateway-"); err != nil {
		s.Close()
		return "", nil, err
	}
	_, _ = fmt.Fprintf(log, "stand-ins of AWS, in memory: %s\n", s)
	return data, func() error {
		s.Close()
		return os.RemoveAll(data)
	}, nil
}

// named reports whether a variable names a resource of an installation.
func named() bool {
	for _, name := range []string{onaws.EnvTablePrefix, onaws.EnvBucket, onaws.EnvAuditQueue, onaws.EnvUsageQueue, onaws.EnvRunQueue, onaws.EnvExportQueue, onaws.EnvKey,
		"AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_KMS"} {
		if os.Getenv(name) != "" {
			return true
		}
	}
	return false
}
