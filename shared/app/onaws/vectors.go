package onaws

import (
	"context"
	"os"

	"gateway/shared/cache"
	"gateway/shared/cache/s3vectors"
)

// EnvVectorBucket names the S3 vector bucket of the semantic cache. Without one
// its vectors stand in the tables, which suits thousands of questions a
// workspace, not millions.
const EnvVectorBucket = "GATEWAY_VECTOR_BUCKET"

// Vectors is the index of the semantic cache; nil without EnvVectorBucket.
func Vectors(ctx context.Context) (cache.Neighbours, error) {
	name := os.Getenv(EnvVectorBucket)
	if name == "" {
		return nil, nil
	}
	cfg, err := Config(ctx)
	if err != nil {
		return nil, err
	}
	return s3vectors.New(cfg, name, nil), nil
}

// SweepVectors deletes vectors of answers that are not kept any more. Without
// EnvVectorBucket there is nothing to do: rows of the tables expire by themselves.
func SweepVectors(ctx context.Context) error {
	v, err := Vectors(ctx)
	if err != nil || v == nil {
		return err
	}
	return v.(*s3vectors.Index).Sweep(ctx)
}
