package onaws

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"gateway/shared/cache"
	"gateway/shared/cache/dynamovectors"
	"gateway/shared/cache/s3vectors"
)

// Variables that say where the vectors of the semantic cache are: in an S3 vector bucket,
// or in a DynamoDB table with vector indexes. Without either they are in the other tables,
// which suits thousands of questions a workspace, not millions.
const (
	EnvVectorBucket     = "GATEWAY_VECTOR_BUCKET"
	EnvVectorTable      = "GATEWAY_VECTOR_TABLE"      // the table's ARN
	EnvVectorDimensions = "GATEWAY_VECTOR_DIMENSIONS" // of its indexes; comma list
)

// Vectors is the index of the semantic cache; nil if no variable names one.
func Vectors(ctx context.Context) (cache.Neighbours, error) {
	bucket, table := os.Getenv(EnvVectorBucket), os.Getenv(EnvVectorTable)
	if bucket == "" && table == "" {
		return nil, nil
	}
	if bucket != "" && table != "" {
		return nil, fmt.Errorf("onaws: %s and %s are both set: vectors stand in one of them", EnvVectorBucket, EnvVectorTable)
	}
	dimensions, err := vectorDimensions()
	if err != nil {
		return nil, err
	}
	if table != "" && len(dimensions) == 0 {
		return nil, fmt.Errorf("onaws: %s needs %s: the numbers of dimensions that its indexes take", EnvVectorTable, EnvVectorDimensions)
	}
	cfg, err := Config(ctx)
	if err != nil {
		return nil, err
	}
	if table != "" {
		return dynamovectors.New(cfg, table, dimensions, nil), nil
	}
	return s3vectors.New(cfg, bucket, nil), nil
}

func vectorDimensions() (out []int, err error) {
	for _, text := range list(EnvVectorDimensions) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > cache.MaxDimensions {
			return nil, fmt.Errorf("onaws: %s: %q must be a number from 1 to %d", EnvVectorDimensions, text, cache.MaxDimensions)
		}
		out = append(out, n)
	}
	return out, nil
}

// SweepVectors deletes the vectors of expired responses from an S3 vector bucket. Rows of
// tables expire automatically.
func SweepVectors(ctx context.Context) error {
	v, err := Vectors(ctx)
	if err != nil {
		return err
	}
	if index, ok := v.(*s3vectors.Index); ok {
		return index.Sweep(ctx)
	}
	return nil
}
