// Package dynamovectors keeps the vectors of the semantic cache in a DynamoDB table with
// vector indexes, one for each number of dimensions. The tenant and the bucket together
// are the index's partition key, which every search must give: a tenant is never a
// filter. Items expire by the table's time to live; until then expired ones are omitted.
// An index sees an item about a second after it was written. after it was written. What
// the service demands (Requirements and Troubleshooting of vector indexes in the
// developer guide, 2026-11): a table billed on demand; conditions by = alone, so expiry
// is compared here; at most 100 results without pages; a search before an index is ready
// is a ValidationException. There is no emulator: the tests use a strict fake, and only a
// deployed table is proof.
package dynamovectors

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"gateway/shared/cache"
	"gateway/shared/cache/dynamovectors/layout"
)

const (
	maxTopK = 100
	// spare is how many more results are requested than needed, because expired ones
	// remain in the index until the table deletes them.
	spare = 32
	// digits is the stored precision of a number. With four digits a cosine differs by
	// less than a ten-thousandth, and a write costs half of what it costs with eight.
	digits = 4
)

// Index is a cache.VectorIndex in a table.
type Index struct {
	client     *dynamodb.Client
	table      string
	dimensions []int
	now        func() time.Time
}

var _ cache.VectorIndex = (*Index)(nil)

// New uses a table, named by its ARN, with indexes for vectors of these numbers of
// dimensions. It makes no call. now is time.Now when nil.
func New(cfg aws.Config, table string, dimensions []int, now func() time.Time) *Index {
	if now == nil {
		now = time.Now
	}
	return &Index{client: dynamodb.NewFromConfig(cfg), table: table, dimensions: dimensions, now: now}
}

// tenant names a bucket together with its tenant, in one length.
func tenant(b cache.Bucket) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%d:%s%s", len(b.Scope.Org), b.Scope.Org, len(b.Scope.Workspace), b.Scope.Workspace, b.ID))
	return hex.EncodeToString(sum[:])
}

// ErrDimensions is given for a vector that no index of the table takes.
var ErrDimensions = errors.New("cache/dynamovectors: no index")

func (x *Index) check(v []float32) error {
	if err := cache.CheckVector(v); err != nil {
		return err
	}
	if !slices.Contains(x.dimensions, len(v)) {
		return fmt.Errorf("%w for vectors of %d dimensions; there is one for %v", ErrDimensions, len(v), x.dimensions)
	}
	return nil
}

// Add implements cache.VectorIndex. Buckets have no bound here.
func (x *Index) Add(ctx context.Context, b cache.Bucket, v cache.Vector) error {
	if err := x.check(v.Values); err != nil {
		return err
	}
	name := tenant(b)
	_, err := x.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &x.table,
		Item: map[string]types.AttributeValue{
			layout.PK: text(name), layout.SK: text(v.ID), layout.Tenant: text(name),
			layout.Expires:            &types.AttributeValueMemberN{Value: strconv.FormatInt(v.Expires.Unix(), 10)},
			attrVector(len(v.Values)): &types.AttributeValueMemberL{Value: numbers(v.Values)},
		},
	})
	return wrap(err)
}

// Nearest implements cache.VectorIndex. At most 100 matches are given.
func (x *Index) Nearest(ctx context.Context, b cache.Bucket, vector []float32, least float64, k int) ([]cache.Match, error) {
	if err := x.check(vector); err != nil {
		return nil, err
	}
	out, err := x.client.SearchVectors(ctx, &dynamodb.SearchVectorsInput{
		TableName: &x.table, IndexName: aws.String(layout.Index + strconv.Itoa(len(vector))),
		SearchVector: numbers(vector), TopK: aws.Int32(int32(min(k+spare, maxTopK))),
		SearchConditionExpression: aws.String("#t = :t"), ProjectionExpression: aws.String("#s, #e"),
		ExpressionAttributeNames:  map[string]string{"#t": layout.Tenant, "#s": layout.SK, "#e": layout.Expires},
		ExpressionAttributeValues: map[string]types.AttributeValue{":t": text(tenant(b))},
	})
	if notReady(err) {
		return nil, nil
	}
	if err != nil {
		return nil, wrap(err)
	}
	now := x.now().Unix()
	var found []cache.Match
	for _, r := range out.SearchResults {
		id, _ := r.Item[layout.SK].(*types.AttributeValueMemberS)
		expires, _ := r.Item[layout.Expires].(*types.AttributeValueMemberN)
		if id == nil || expires == nil || math.IsNaN(r.Score) {
			continue
		}
		if until, err := strconv.ParseInt(expires.Value, 10, 64); err != nil || until <= now {
			continue
		}
		// The score of a cosine is its distance: 0 for the same direction.
		if score := 1 - r.Score; score >= least {
			found = append(found, cache.Match{ID: id.Value, Score: score})
		}
	}
	sort.SliceStable(found, func(i, j int) bool { return found[i].Score > found[j].Score })
	return found[:min(len(found), k)], nil
}

func attrVector(dimensions int) string { return layout.Vector + strconv.Itoa(dimensions) }

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func numbers(v []float32) []types.AttributeValue {
	list := make([]types.AttributeValue, len(v))
	for i, f := range v {
		list[i] = &types.AttributeValueMemberN{Value: strconv.FormatFloat(float64(f), 'g', digits, 32)}
	}
	return list
}

// notReady reports whether an index is still being made.
func notReady(err error) bool {
	var coded interface {
		ErrorCode() string
		ErrorMessage() string
	}
	return errors.As(err, &coded) && coded.ErrorCode() == "ValidationException" &&
		(strings.Contains(coded.ErrorMessage(), "backfilling vector index") || strings.Contains(coded.ErrorMessage(), "does not have the specified index"))
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cache/dynamovectors: %w", err)
}
