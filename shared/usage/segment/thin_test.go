package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"gateway/shared/blob"
	"gateway/shared/blob/s3"
	"gateway/shared/store"
	"gateway/shared/testkit/dynamotest"
	"gateway/shared/usage"
)

// A killed process writes nothing more.
var errKilled = errors.New("killed")

// life counts the writes that a process may still make.
type life struct{ left int }

func (l *life) spend() error {
	if l.left == 0 {
		return errKilled
	}
	l.left--
	return nil
}

// compactByLives compacts an archive in processes that are killed, each after one write
// more than the one before, until one completes; first is the number of writes of the first
// process. After each kill all records are there.
func (h *shelf) compactByLives(t *testing.T, o Options, writes, records int) {
	t.Helper()
	for run := 0; ; run++ {
		l := &life{left: writes + run}
		h.Archive = New(mortalStore{h.store, l}, mortal(h.bucket, l), o)
		err := h.Compact(context.Background())
		h.Archive = New(h.store, h.bucket, o)
		if have := h.contents(t); len(have) != records {
			t.Fatalf("%d writes, run %d: %d records, want %d", writes, run, len(have), records)
		}
		if err == nil {
			return
		}
		if !errors.Is(err, errKilled) {
			t.Fatal(err)
		}
	}
}

type mortalStore struct {
	store.Store
	*life
}

func (s mortalStore) Table(name store.TableName) store.Table {
	return mortalTable{s.Store.Table(name), s.life}
}

func (s mortalStore) Transact(ctx context.Context, actions ...store.Action) error {
	if err := s.spend(); err != nil {
		return err
	}
	return s.Store.Transact(ctx, actions...)
}

type mortalTable struct {
	store.Table
	*life
}

func (t mortalTable) Put(ctx context.Context, row store.Row, conds ...store.Cond) error {
	if err := t.spend(); err != nil {
		return err
	}
	return t.Table.Put(ctx, row, conds...)
}

func (t mortalTable) PutMany(ctx context.Context, rows []store.Row) error {
	if err := t.spend(); err != nil {
		return err
	}
	return t.Table.PutMany(ctx, rows)
}

func (t mortalTable) Delete(ctx context.Context, key store.Key, conds ...store.Cond) error {
	if err := t.spend(); err != nil {
		return err
	}
	return t.Table.Delete(ctx, key, conds...)
}

// mortalBucket hides that files can be blanked in place, unless the wrapped bucket can.
type mortalBucket struct {
	blob.Bucket
	*life
}

type mortalFiles struct{ mortalBucket }

func (b mortalBucket) Put(ctx context.Context, key string, body []byte) error {
	if err := b.spend(); err != nil {
		return err
	}
	return b.Bucket.Put(ctx, key, body)
}

func (b mortalBucket) Delete(ctx context.Context, key string) error {
	if err := b.spend(); err != nil {
		return err
	}
	return b.Bucket.Delete(ctx, key)
}

func (b mortalFiles) Erase(ctx context.Context, key string, spans []blob.Span) error {
	for i := range spans { // a kill may come between any two
		if err := b.spend(); err != nil {
			return err
		}
		if err := b.Bucket.(blob.Eraser).Erase(ctx, key, spans[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

func mortal(b blob.Bucket, l *life) blob.Bucket {
	if _, ok := b.(blob.Eraser); ok {
		return mortalFiles{mortalBucket{b, l}}
	}
	return mortalBucket{b, l}
}

func fakeS3(t *testing.T) blob.Bucket {
	backend := s3mem.New()
	if err := backend.CreateBucket("bucket"); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(s.Close)
	cfg := aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""), RetryMaxAttempts: 1}
	return s3.New(cfg, "bucket", s3.Endpoint(s.URL), s3.PathStyle())
}

// thinShelf has three days of four workspaces of two organizations, with bodies in every
// possible location. It returns the contents and the workspace of each record.
func thinShelf(t *testing.T, h *shelf, inline int) (want map[string]string, of map[string]string) {
	t.Helper()
	want, of = make(map[string]string), make(map[string]string)
	o := h.o
	o.Inline = inline
	h.Archive = New(h.store, h.bucket, o)
	day := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	var pack []byte
	var records []usage.Record
	for i := range 24 {
		r := made(i, day.AddDate(0, 0, i/8).Add(time.Duration(i%8)*20*time.Minute))
		r.Org, r.Workspace = []string{"org-1", "org-1", "org-1", "org-2"}[i%4], []string{"ws-1", "ws-2", "ws-3", "ws-1"}[i%4]
		text := fmt.Sprintf("bodies-%s-%s-%02d", r.Org, r.Workspace, i)
		switch i % 3 {
		case 0:
			r.Bodies = []byte(text)
		case 1:
			r.Pack = usage.Pack{Key: journalPacks + "2026/03/01/1-0", Offset: int64(len(pack)), Length: int64(len(text))}
			pack = append(pack, text...)
		default:
			r.Blob = usage.BodyKey(&r)
			if err := h.bucket.Put(context.Background(), r.Blob, []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		want[r.ID], of[r.ID] = text, r.Org+"/"+r.Workspace
		records = append(records, r)
	}
	if err := h.bucket.Put(context.Background(), journalPacks+"2026/03/01/1-0", pack); err != nil {
		t.Fatal(err)
	}
	for i := range records { // batches of one: each with a separate pack, and pairs that a merge joins
		h.ingest(t, records[i:min(i+1+i%2, len(records))]...)
	}
	h.compactAt(t, day.Add(26*time.Hour)) // the first day completely, the others in batches
	return want, of
}

// held reads the stored records of both organizations: bodies by id.
func (h *shelf) held(t *testing.T) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, org := range []string{"org-1", "org-2"} {
		list, err := h.List(context.Background(), org, 0, 1<<60)
		if err != nil {
			t.Fatal(err)
		}
		for i := range list {
			f, err := h.File(context.Background(), &list[i])
			if err != nil {
				t.Fatal(err)
			}
			for g := range f.Groups {
				for row := range f.Groups[g].Rows {
					records, err := f.Records(context.Background(), g, []int{row})
					if err != nil {
						t.Fatal(err)
					}
					b, err := bodiesOf(context.Background(), f, g, row)
					if err == nil && records[0].Blob != "" {
						b, err = h.bucket.Get(context.Background(), records[0].Blob, 0)
						if errors.Is(err, blob.ErrNotFound) {
							b, err = nil, nil
						}
					}
					if err != nil {
						t.Fatal(err)
					}
					out[records[0].ID] = string(b)
				}
			}
		}
	}
	return out
}

// traces lists the objects that have something of a workspace.
func (h *shelf) traces(t *testing.T, text string) (keys []string) {
	t.Helper()
	all, err := h.bucket.List(context.Background(), "", "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range all {
		if b, err := h.bucket.Get(context.Background(), key, 0); err != nil {
			t.Fatal(err)
		} else if bytes.Contains(b, []byte(text)) {
			keys = append(keys, key)
		}
	}
	return keys
}

// However often and wherever a process is killed while it deletes what a workspace does not
// keep: nothing of other workspaces is lost at any time, and at the end nothing remains of
// what had to go.
//
//lane:property
func TestThinningLosesNothingOfOthersWhereverItIsKilled(t *testing.T) {
	for name, c := range map[string]struct {
		inline int
		bucket func(*testing.T) blob.Bucket
		store  func(*testing.T) store.Store
	}{
		"files, in the store":     {inline: 0},
		"files, in the bucket":    {inline: 1},
		"S3":                      {inline: 1, bucket: fakeS3},
		"S3 and another store":    {inline: 1, bucket: fakeS3, store: func(t *testing.T) store.Store { return dynamotest.Open(t, dynamotest.Start(t)) }},
		"files and another store": {inline: 0, store: func(t *testing.T) store.Store { return dynamotest.Open(t, dynamotest.Start(t)) }},
	} {
		t.Run(name, func(t *testing.T) {
			step := 3 // every run of a row is killed one write later than the one before
			if c.bucket != nil {
				step = 5
			}
			if c.store != nil {
				step = 15 // each shelf costs a server
			}
			if testing.Short() {
				step = 15
			}
			for writes := 0; ; writes += step {
				if thinKilledAfter(t, c.inline, c.bucket, c.store, writes) {
					if writes < 10 {
						t.Fatalf("it was through after %d writes", writes)
					}
					return
				}
			}
		})
	}
}

// thinKilledAfter kills each process of a series after a number of writes, until one completes;
// first reports whether that was the first one.
func thinKilledAfter(t *testing.T, inline int, bucket func(*testing.T) blob.Bucket, open func(*testing.T) store.Store, writes int) (first bool) {
	t.Helper()
	h := newShelf(t)
	if bucket != nil {
		h.bucket = bucket(t)
	}
	if open != nil {
		h.store = open(t)
	}
	want, of := thinShelf(t, h, inline)
	// On the fourth, ws-1 retains only the third, ws-2 all, and the others two days: one of
	// org-1, because org-2 has no setting.
	h.now = time.Date(2026, 3, 4, 1, 0, 0, 0, time.UTC)
	retention := usage.WorkspaceRetention{Standard: 2, Of: map[string]int{"ws-1": 1, "ws-2": 0}}
	stays := maps.Clone(want)
	var gone []string
	for id, text := range want {
		i, err := strconv.Atoi(text[len(text)-2:])
		if err != nil {
			t.Fatal(err)
		}
		if of[id] == "org-1/ws-1" && i < 16 || of[id] == "org-1/ws-3" && i < 8 {
			delete(stays, id)
			gone = append(gone, text)
		}
	}
	if len(gone) != 6 {
		t.Fatalf("%d records have to go", len(gone))
	}
	rules := func(_ context.Context, sc store.Scope) (usage.WorkspaceRetention, error) {
		if sc.Org == "org-1" {
			return retention, nil
		}
		return usage.WorkspaceRetention{}, nil
	}
	through := false
	for run := 0; !through; run++ {
		l := &life{left: writes + run}
		o := h.o
		o.Inline, o.WorkspaceRetention = inline, rules
		h.Archive = New(mortalStore{h.store, l}, mortal(h.bucket, l), o)
		err := errors.Join(h.Compact(context.Background()), h.Retain(context.Background()))
		if through = err == nil; through && run == 0 {
			first = true
		}
		if err != nil && !errors.Is(err, errKilled) {
			t.Fatalf("%d writes, run %d: %v", writes, run, err)
		}
		o.WorkspaceRetention = nil
		h.Archive = New(h.store, h.bucket, o)
		have := h.held(t)
		for id, text := range stays {
			if have[id] != text {
				t.Fatalf("%d writes, run %d: %s of %s has %q, want %q", writes, run, id, of[id], have[id], text)
			}
		}
		h.now = h.now.Add(time.Hour)
	}
	h.compactAt(t, h.now.Add(gonePeriod)) // the sweep
	if have := h.held(t); len(have) != len(stays) {
		t.Fatalf("%d writes: %d records are left, want %d", writes, len(have), len(stays))
	}
	for _, text := range gone {
		if keys := h.traces(t, text); len(keys) > 0 {
			t.Fatalf("%d writes: %s is still in %v", writes, text, keys)
		}
	}
	return first
}

// A day that was thinned before and gets late records is thinned again.
func TestLateRecordsAreThinnedToo(t *testing.T) {
	h := newShelf(t)
	h.o.WorkspaceRetention = func(context.Context, store.Scope) (usage.WorkspaceRetention, error) {
		return usage.WorkspaceRetention{Standard: 3}, nil
	}
	day := time.Date(2026, 3, 1, 5, 0, 0, 0, time.UTC)
	h.ingest(t, made(1, day), made(2, day.AddDate(0, 0, 9)))
	retain := func(at time.Time) {
		t.Helper()
		h.compactAt(t, at)
		if err := h.Retain(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	retain(day.AddDate(0, 0, 10))
	if n := len(h.contents(t)); n != 1 {
		t.Fatalf("%d records are left of two", n)
	}
	h.ingest(t, made(3, day.Add(time.Minute)))
	retain(day.AddDate(0, 0, 10).Add(time.Hour))
	retain(day.AddDate(0, 0, 10).Add(2 * time.Hour))
	if n := len(h.contents(t)); n != 1 {
		t.Fatalf("%d records are left after a late one", n)
	}
	// Rules that get shorter take the days between.
	h.o.WorkspaceRetention = func(context.Context, store.Scope) (usage.WorkspaceRetention, error) {
		return usage.WorkspaceRetention{Standard: 30, Of: map[string]int{"ws-1": 1}}, nil
	}
	retain(day.AddDate(0, 0, 12))
	if n := len(h.contents(t)); n != 0 {
		t.Fatalf("%d records are left after a shorter rule", n)
	}
}

// An organization that another process thins is skipped.
func TestOneProcessAtATimeThinsAnOrganisation(t *testing.T) {
	h := newShelf(t)
	h.o.WorkspaceRetention = func(context.Context, store.Scope) (usage.WorkspaceRetention, error) {
		return usage.WorkspaceRetention{Standard: 1}, nil
	}
	day := time.Date(2026, 3, 1, 5, 0, 0, 0, time.UTC)
	h.ingest(t, made(1, day))
	h.compactAt(t, day.AddDate(0, 0, 5))
	alone := thinner{h.Archive}
	p, free, err := alone.progressOf(context.Background(), "org-1", h.now)
	if err != nil || !free {
		t.Fatal(free, err)
	}
	if mine, err := alone.saveProgress(context.Background(), &p, h.now.Add(thinLease)); err != nil || !mine {
		t.Fatal(mine, err)
	}
	if err := h.Retain(context.Background()); err != nil || len(h.contents(t)) != 1 {
		t.Fatalf("it was thinned all the same: %v", err)
	}
	h.now = h.now.Add(thinLease + time.Second)
	if err := h.Retain(context.Background()); err != nil || len(h.contents(t)) != 0 {
		t.Fatalf("it was not thinned when the other one's time was over: %v", err)
	}
}
