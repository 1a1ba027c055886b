// Package s3vectors stores the vectors of the semantic cache in an S3 vector bucket.
// There is one index for each number of dimensions, created with its first vector. Tenant
// and bucket are part of the keys and of the metadata that queries filter by. Vectors do
// not expire automatically: queries omit expired ones, and Sweep deletes them.
package s3vectors

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"sort"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3vectors"
	"github.com/aws/aws-sdk-go-v2/service/s3vectors/document"
	"github.com/aws/aws-sdk-go-v2/service/s3vectors/types"

	"gateway/shared/cache"
)

// indexPrefix is what the names of the gateway's indexes begin with; the number
// of dimensions follows.
const indexPrefix = "answers-"

// Bounds of the service.
const (
	maxTopK   = 30
	maxDelete = 500 // keys of one deletion
	listPage  = 500
)

// Metadata of a vector. Both are filtered by.
const (
	metaBucket  = "bucket"
	metaExpires = "expires" // Unix seconds
)

// Index is a cache.VectorIndex in a vector bucket.
type Index struct {
	client *s3vectors.Client
	bucket string
	now    func() time.Time
}

var _ cache.VectorIndex = (*Index)(nil)

// New uses the vector bucket of that name with cfg's Region and credentials. It
// makes no call. now is time.Now when nil.
func New(cfg aws.Config, bucket string, now func() time.Time) *Index {
	if now == nil {
		now = time.Now
	}
	return &Index{client: s3vectors.NewFromConfig(cfg), bucket: bucket, now: now}
}

// tenant returns the name of a bucket with its tenant. All names have the same length, so
// that no name is a prefix of another.
func tenant(b cache.Bucket) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%d:%s%s", len(b.Scope.Org), b.Scope.Org, len(b.Scope.Workspace), b.Scope.Workspace, b.ID))
	return hex.EncodeToString(sum[:])
}

func indexOf(dimensions int) *string { return aws.String(fmt.Sprint(indexPrefix, dimensions)) }

// Add implements cache.VectorIndex. Buckets have no bound here.
func (x *Index) Add(ctx context.Context, b cache.Bucket, v cache.Vector) error {
	if err := cache.CheckVector(v.Values); err != nil {
		return err
	}
	name := tenant(b)
	in := &s3vectors.PutVectorsInput{
		VectorBucketName: &x.bucket, IndexName: indexOf(len(v.Values)),
		Vectors: []types.PutInputVector{{
			Key: aws.String(name + "/" + v.ID), Data: &types.VectorDataMemberFloat32{Value: v.Values},
			Metadata: document.NewLazyDocument(map[string]any{metaBucket: name, metaExpires: v.Expires.Unix()}),
		}},
	}
	_, err := x.client.PutVectors(ctx, in)
	if !absent(err) {
		return wrap(err)
	}
	if err := x.makeIndex(ctx, len(v.Values)); err != nil {
		return err
	}
	_, err = x.client.PutVectors(ctx, in)
	return wrap(err)
}

// makeIndex makes the index for vectors of so many dimensions. It is no error if another
// process was faster.
func (x *Index) makeIndex(ctx context.Context, dimensions int) error {
	_, err := x.client.CreateIndex(ctx, &s3vectors.CreateIndexInput{
		VectorBucketName: &x.bucket, IndexName: indexOf(dimensions), DataType: types.DataTypeFloat32,
		Dimension: aws.Int32(int32(dimensions)), DistanceMetric: types.DistanceMetricCosine,
	})
	var there *types.ConflictException
	if errors.As(err, &there) {
		return nil
	}
	return wrap(err)
}

// Nearest implements cache.VectorIndex. At most 30 matches are given.
func (x *Index) Nearest(ctx context.Context, b cache.Bucket, vector []float32, least float64, k int) ([]cache.Match, error) {
	if err := cache.CheckVector(vector); err != nil {
		return nil, err
	}
	name := tenant(b)
	pages := s3vectors.NewQueryVectorsPaginator(x.client, &s3vectors.QueryVectorsInput{
		VectorBucketName: &x.bucket, IndexName: indexOf(len(vector)), TopK: aws.Int32(int32(min(k, maxTopK))),
		QueryVector: &types.VectorDataMemberFloat32{Value: vector}, ReturnDistance: true,
		Filter: document.NewLazyDocument(map[string]any{"$and": []any{
			map[string]any{metaBucket: map[string]any{"$eq": name}},
			map[string]any{metaExpires: map[string]any{"$gt": x.now().Unix()}},
		}}),
	})
	var found []cache.Match
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if absent(err) {
			return nil, nil // no vector with this number of dimensions was ever stored
		}
		if err != nil {
			return nil, wrap(err)
		}
		for _, v := range page.Vectors {
			id, mine := strings.CutPrefix(aws.ToString(v.Key), name+"/")
			if !mine || v.Distance == nil || math.IsNaN(float64(*v.Distance)) {
				continue
			}
			if score := 1 - float64(*v.Distance); score >= least {
				found = append(found, cache.Match{ID: id, Score: score})
			}
		}
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].Score > found[j].Score })
	return found, nil
}

// Sweep deletes the vectors that have expired.
func (x *Index) Sweep(ctx context.Context) error {
	indexes := s3vectors.NewListIndexesPaginator(x.client, &s3vectors.ListIndexesInput{VectorBucketName: &x.bucket, Prefix: aws.String(indexPrefix)})
	for indexes.HasMorePages() {
		page, err := indexes.NextPage(ctx)
		if err != nil {
			return wrap(err)
		}
		for _, index := range page.Indexes {
			if err := x.sweep(ctx, index.IndexName); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *Index) sweep(ctx context.Context, index *string) error {
	var over []string
	vectors := s3vectors.NewListVectorsPaginator(x.client, &s3vectors.ListVectorsInput{
		VectorBucketName: &x.bucket, IndexName: index, ReturnMetadata: true, MaxResults: aws.Int32(listPage),
	})
	now := x.now().Unix()
	for vectors.HasMorePages() {
		page, err := vectors.NextPage(ctx)
		if err != nil {
			return wrap(err)
		}
		for _, v := range page.Vectors {
			var meta struct {
				Expires float64 `document:"expires"`
			}
			if v.Metadata == nil || v.Metadata.UnmarshalSmithyDocument(&meta) != nil || int64(meta.Expires) > now {
				continue
			}
			over = append(over, aws.ToString(v.Key))
		}
	}
	for len(over) > 0 {
		n := min(len(over), maxDelete)
		_, err := x.client.DeleteVectors(ctx, &s3vectors.DeleteVectorsInput{VectorBucketName: &x.bucket, IndexName: index, Keys: over[:n]})
		if err != nil {
			return wrap(err)
		}
		over = over[n:]
	}
	return nil
}

// absent reports whether an index does not exist.
func absent(err error) bool {
	var none *types.NotFoundException
	return errors.As(err, &none)
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cache/s3vectors: %w", err)
}
