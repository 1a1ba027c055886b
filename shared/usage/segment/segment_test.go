package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"gateway/shared/blob"
	"gateway/shared/blob/files"
	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
	"gateway/shared/usage"
)

type shelf struct {
	*Archive
	store  store.Store
	bucket blob.Bucket
	now    time.Time
	bad    []error
}

func newShelf(t testing.TB) *shelf {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	b, err := files.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &shelf{store: s, bucket: b, now: noon}
	h.Archive = New(s, b, Options{Clock: func() time.Time { return h.now }, OnBad: func(_ string, err error) { h.bad = append(h.bad, err) }})
	return h
}

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

func made(i int, start time.Time) usage.Record {
	var id ulid.ULID
	if err := id.SetTime(ulid.Timestamp(start)); err != nil {
		panic(err)
	}
	copy(id[12:], []byte{byte(i >> 24), byte(i >> 16), byte(i >> 8), byte(i)})
	r := usage.Record{
		ID: id.String(), Start: start, Org: "org-1", Workspace: "ws-1", WorkspaceSlug: "default", KeyID: "6f1c1a52-7f0e-4f8f-9c39-3f4f0a9e2b11", KeyType: "workspace-service",
		EndUser: "alice", Metadata: map[string]string{"_user": "alice", "team": "search"}, Endpoint: "chatComplete", Method: "POST", Path: "/v1/chat/completions",
		RequestModel: "gpt-4o", ClientStatus: 200, Provider: "openai", ProviderSlug: "main", Model: "gpt-4o-2024-08-06", OptionIndex: "config", CacheStatus: "MISS",
		FinishReason: "stop", Cost: 1_000_000, Priced: true, Duration: 900 * time.Millisecond, TimeToFirstByte: 200 * time.Millisecond,
	}
	r.Usage.Set(pricing.Input, 900)
	r.Usage.Set(pricing.Output, 100)
	r.Attempts = []usage.Attempt{{Provider: "openai", ProviderSlug: "main", Model: "gpt-4o", OptionIndex: "config", Status: 200, Usage: r.Usage, Cost: r.Cost}}
	return r
}

func several(n int, start time.Time) []usage.Record {
	records := make([]usage.Record, n)
	for i := range records {
		records[i] = made(i, start.Add(time.Duration(i)*time.Millisecond))
	}
	return records
}

func (h *shelf) ingest(t testing.TB, records ...usage.Record) {
	t.Helper()
	if err := h.Ingest(context.Background(), slices.Clone(records)); err != nil {
		t.Fatal(err)
	}
}

func (h *shelf) compactAt(t testing.TB, now time.Time) {
	t.Helper()
	h.now = now
	if err := h.Compact(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func (h *shelf) all(t testing.TB) []Manifest {
	t.Helper()
	list, err := h.List(context.Background(), "org-1", 0, math.MaxInt64/4)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// rows counts the rows of a partition prefix, whatever it holds.
func (h *shelf) rows(t testing.TB, p store.Partition) (keys []string) {
	t.Helper()
	page, err := h.store.Table(store.Usage).Query(context.Background(), store.Query{Partition: p})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Rows {
		keys = append(keys, r.Key.SK())
	}
	return keys
}

// contents reads every record of every segment with its bodies.
func (h *shelf) contents(t testing.TB) map[string]string {
	t.Helper()
	out := make(map[string]string)
	for _, m := range h.all(t) {
		f, err := h.File(context.Background(), &m)
		if err != nil {
			t.Fatal(err)
		}
		for g := range f.Groups {
			var rows []int
			for i := range f.Groups[g].Rows {
				rows = append(rows, i)
			}
			records, err := f.Records(context.Background(), g, rows)
			if err != nil {
				t.Fatal(err)
			}
			for i := range records {
				b, err := f.Bodies(context.Background(), g, i)
				if err != nil {
					t.Fatal(err)
				}
				out[records[i].ID] = string(b)
			}
		}
	}
	return out
}

func TestOneBatchDeliveredAgainIsOneSegment(t *testing.T) {
	h := newShelf(t)
	records := several(50, noon)
	h.ingest(t, records...)
	slices.Reverse(records)
	h.ingest(t, records...)
	list := h.all(t)
	if len(list) != 1 || list[0].Records != 50 || list[0].Tier != TierBatch {
		t.Fatalf("%+v", list)
	}
	if keys := h.rows(t, store.Scope{Org: "org-1"}.Partition("SEG", list[0].Name)); !slices.Equal(keys, []string{"cube", "data"}) {
		t.Errorf("objects of the segment: %v", keys)
	}
}

func TestSegmentsKeepToTheirHourAndOrganisation(t *testing.T) {
	h := newShelf(t)
	a, b, c := made(1, noon.Add(-time.Millisecond)), made(2, noon), made(3, noon)
	c.Org = "org-2"
	h.ingest(t, a, b, c)
	list := h.all(t)
	if len(list) != 2 || list[0].Hour+1 != list[1].Hour {
		t.Fatalf("%+v", list)
	}
	other, err := h.List(context.Background(), "org-2", 0, math.MaxInt64/4)
	if err != nil || len(other) != 1 || other[0].Records != 1 {
		t.Errorf("%+v %v", other, err)
	}
}

func TestRecordsThatCannotBeKeptDoNotStopTheOthers(t *testing.T) {
	h := newShelf(t)
	good := made(1, noon)
	ownerless, nameless, timeless, dated := made(2, noon), made(3, noon), made(4, noon), made(5, noon)
	ownerless.Org, nameless.ID, timeless.Start, timeless.ID, dated.Start = "", "", time.Time{}, "no ulid", time.Time{}
	h.ingest(t, ownerless, nameless, timeless, dated, good)
	if len(h.bad) != 3 || !errors.Is(h.bad[0], ErrNoOwner) || !errors.Is(h.bad[2], ErrNoTime) {
		t.Errorf("%v", h.bad)
	}
	if list := h.all(t); len(list) != 1 || list[0].Records != 2 {
		t.Errorf("%+v", list)
	}
}

// From batches to a minute's segment, an hour's and a day's; nothing is lost and
// nothing stays behind.
func TestCompactionMergesTierByTier(t *testing.T) {
	h := newShelf(t)
	want := make(map[string]string)
	var batches [][]usage.Record
	for k := range 12 {
		records := several(20, noon.Add(time.Duration(k)*10*time.Minute))
		for i := range records {
			records[i].ID = made(k*100+i, records[i].Start).ID
			if i%3 == 0 {
				records[i].Bodies = []byte("bodies of " + records[i].ID)
			}
			want[records[i].ID] = string(records[i].Bodies)
		}
		// Each batch repeats records of the one before in its hour.
		if k%6 > 0 {
			records = append(records, batches[k-1][:5]...)
		}
		batches = append(batches, records)
		h.now = records[0].Start.Add(time.Second)
		h.ingest(t, records...)
	}
	check := func(when string, tiers ...Tier) {
		t.Helper()
		if got := h.contents(t); len(got) != len(want) {
			t.Fatalf("%s: %d records, want %d", when, len(got), len(want))
		} else {
			for id, bodies := range want {
				if b, ok := got[id]; !ok || b != bodies {
					t.Fatalf("%s: %s has bodies %q, want %q", when, id, b, bodies)
				}
			}
		}
		var have []Tier
		for _, m := range h.all(t) {
			have = append(have, m.Tier)
		}
		if !slices.Equal(have, tiers) {
			t.Fatalf("%s: tiers %v, want %v", when, have, tiers)
		}
	}
	check("as written", make([]Tier, 12)...)
	h.compactAt(t, noon.Add(119*time.Minute+59*time.Second)) // the first hour is over, the second one lasts
	check("second hour lasting", TierHour, TierMinute)
	h.compactAt(t, noon.Add(2*time.Hour+5*time.Minute))
	check("hours over", TierHour, TierMinute)
	h.compactAt(t, noon.Add(14*time.Hour))
	check("day over", TierDay)
	if m := h.all(t)[0]; m.Records != int64(len(want)) {
		t.Errorf("the day has %d records, want %d", m.Records, len(want))
	}
	// A late delivery of what is there is dropped again.
	h.ingest(t, batches[3]...)
	h.compactAt(t, noon.Add(15*time.Hour))
	check("after a late delivery", TierDay)
	h.compactAt(t, noon.Add(16*time.Hour))
	if due := h.rows(t, store.System("USAGE-DUE")); len(due) != 2 || due[0][0] != 'B' || due[1][0] != 'R' {
		t.Errorf("left are %v, want the two notes of retention", due)
	}
	check("swept", TierDay)
	keys, err := h.bucket.List(context.Background(), "", "", 100)
	if err != nil || len(keys) != 0 {
		t.Errorf("the bucket has %v %v", keys, err)
	}
}

// repeating is a store whose conditional writes are sent twice, as a client does
// that lost the first answer.
type repeating struct{ store.Store }

type repeatingTable struct{ store.Table }

func (s repeating) Table(name store.TableName) store.Table {
	return repeatingTable{s.Store.Table(name)}
}

func (s repeating) Transact(ctx context.Context, actions ...store.Action) error {
	if err := s.Store.Transact(ctx, actions...); err != nil {
		return err
	}
	return s.Store.Transact(ctx, actions...)
}

func (t repeatingTable) Put(ctx context.Context, row store.Row, conds ...store.Cond) error {
	if err := t.Table.Put(ctx, row, conds...); err != nil {
		return err
	}
	return t.Table.Put(ctx, row, conds...)
}

func TestWritesThatAreRepeatedLoseNothing(t *testing.T) {
	h := newShelf(t)
	h.Archive = New(repeating{h.store}, h.bucket, Options{Clock: func() time.Time { return h.now }})
	for i := range 6 {
		h.ingest(t, made(i, noon.Add(time.Duration(i)*time.Second)))
	}
	h.compactAt(t, noon.Add(time.Minute))
	h.compactAt(t, noon.Add(2*time.Hour))
	h.Archive = New(h.store, h.bucket, Options{}) // with nothing in memory
	if got := h.contents(t); len(got) != 6 || len(h.all(t)) != 1 {
		t.Errorf("%d records in %d segments", len(got), len(h.all(t)))
	}
}

func TestMergedSegmentsStayReadableForAWhile(t *testing.T) {
	h := newShelf(t)
	for i := range 5 {
		h.ingest(t, made(i, noon.Add(time.Duration(i)*time.Second)))
	}
	before := h.all(t)
	h.compactAt(t, noon.Add(time.Minute))
	if len(h.all(t)) != 1 {
		t.Fatal("nothing was merged")
	}
	fresh := New(h.store, h.bucket, Options{})
	if _, err := fresh.Cube(context.Background(), &before[0]); err != nil {
		t.Errorf("a reader with an old list: %v", err)
	}
	h.compactAt(t, noon.Add(12*time.Minute))
	if _, err := New(h.store, h.bucket, Options{}).Cube(context.Background(), &before[0]); !errors.Is(err, ErrGone) {
		t.Errorf("after the sweep: %v", err)
	}
}

func TestLargeObjectsStandInTheBucket(t *testing.T) {
	h := newShelf(t)
	rnd := rand.New(rand.NewPCG(1, 2))
	var want []string
	for k := range 4 {
		records := several(8, noon.Add(time.Duration(k)*time.Second))
		for i := range records {
			records[i].ID = made(k*10+i, records[i].Start).ID
			noise := make([]byte, 60<<10)
			for j := range noise {
				noise[j] = byte(rnd.Uint32())
			}
			records[i].Bodies = noise
			records[i].ErrorMessage = string(bytes.ToValidUTF8(noise, []byte("?"))) // makes the file large as well
			want = append(want, records[i].ID+string(noise))
		}
		h.ingest(t, records...)
	}
	check := func(when string) {
		t.Helper()
		var got []string
		for id, b := range h.contents(t) {
			got = append(got, id+b)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%s: contents differ", when)
		}
	}
	check("as written")
	for _, m := range h.all(t) {
		if !m.inBucket(dataObject) || !m.inBucket(bodiesObject) || m.inBucket(cubeObject) {
			t.Fatalf("objects in the bucket: %q", m.blobs)
		}
	}
	h.compactAt(t, noon.Add(time.Minute))
	h.compactAt(t, noon.Add(2*time.Hour))
	h.compactAt(t, noon.Add(3*time.Hour))
	if list := h.all(t); len(list) != 1 || list[0].Size <= wholeFile {
		t.Fatalf("%+v", list)
	}
	check("merged and swept")
	keys, err := h.bucket.List(context.Background(), "segments/", "", 100)
	if err != nil || len(keys) != 5 { // one file, the four packs that it refers to
		t.Errorf("%v %v", keys, err)
	}
}

// Any Parquet reader can use the files.
func TestFilesAreOrdinaryParquet(t *testing.T) {
	h := newShelf(t)
	r := made(1, noon)
	h.ingest(t, r)
	b, err := h.object(context.Background(), &h.all(t)[0], dataObject)
	if err != nil {
		t.Fatal(err)
	}
	type foreign struct {
		Model    string            `parquet:"model"`
		Cost     int64             `parquet:"cost"`
		Start    time.Time         `parquet:"start,timestamp(microsecond)"`
		Metadata map[string]string `parquet:"metadata"`
	}
	rows, err := parquet.Read[foreign](bytes.NewReader(b), int64(len(b)))
	if err != nil || len(rows) != 1 || rows[0].Model != r.Model || rows[0].Cost != 1_000_000 || !rows[0].Start.Equal(noon) || rows[0].Metadata["team"] != "search" {
		t.Errorf("%+v %v", rows, err)
	}
}

func TestColumnsSpanRowGroups(t *testing.T) {
	h := newShelf(t)
	n := groupRows + 100
	records := make([]usage.Record, n)
	for i := range records {
		records[i] = made(i, noon.Add(time.Duration(i)*100*time.Microsecond))
		records[i].Model = fmt.Sprint("m", i%7)
		records[i].Metadata = nil
		if i%5 == 0 {
			records[i].Metadata = map[string]string{"n": fmt.Sprint(i % 3), "other": "x"}
		}
	}
	for chunk := range slices.Chunk(records, 4000) {
		h.ingest(t, chunk...)
	}
	h.compactAt(t, noon.Add(2*time.Hour))
	list := h.all(t)
	if len(list) != 1 || list[0].Records != int64(n) {
		t.Fatalf("%+v", list)
	}
	f, err := h.File(context.Background(), &list[0])
	if err != nil || len(f.Groups) != 2 {
		t.Fatal(len(f.Groups), err)
	}
	i := 0
	for g := range f.Groups {
		models, err := f.Strings(context.Background(), g, Model)
		if err != nil {
			t.Fatal(err)
		}
		meta, err := f.Metadata(context.Background(), g, "n")
		if err != nil {
			t.Fatal(err)
		}
		starts, err := f.Ints(context.Background(), g, Start)
		if err != nil {
			t.Fatal(err)
		}
		if starts[0] != f.Groups[g].First || starts[len(starts)-1] != f.Groups[g].Last {
			t.Errorf("bounds of group %d", g)
		}
		for row := range f.Groups[g].Rows {
			r := &records[i]
			if models.At(row) != r.Model || starts[row] != r.Start.UnixMicro() {
				t.Fatalf("row %d of group %d is %s at %d", row, g, models.At(row), starts[row])
			}
			if want, ok := r.Metadata["n"]; ok != (meta.Code(row) != Absent) || ok && meta.At(row) != want {
				t.Fatalf("metadata of row %d of group %d", row, g)
			}
			i++
		}
		last := f.Groups[g].Rows - 1
		got, err := f.Records(context.Background(), g, []int{0, last / 2, last})
		if err != nil || got[0].Start.UnixMicro() != starts[0] || got[1].Start.UnixMicro() != starts[last/2] || got[2].Start.UnixMicro() != starts[last] {
			t.Fatalf("records of group %d: %v", g, err)
		}
	}
}

func TestCubesDecodeToWhatWasAdded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := newCubeBuilder()
		type key struct {
			hour  int64
			model string
			code  int
		}
		counts, costs := make(map[key]int64), make(map[key]int64)
		n := rapid.IntRange(0, 60).Draw(t, "n")
		for i := range n {
			r := made(i, noon.Add(time.Duration(rapid.Int64Range(0, 3*3600).Draw(t, "s"))*time.Second))
			r.Model, r.ClientStatus = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "model"), rapid.SampledFrom([]int{200, 500}).Draw(t, "status")
			b.add(&r)
			k := key{r.Start.Truncate(time.Hour).UnixMicro(), r.Model, r.ClientStatus}
			counts[k]++
			costs[k] += int64(r.Cost)
		}
		encoded, err := b.encode()
		if err != nil {
			t.Fatal(err)
		}
		cube, err := decodeCube(encoded)
		if err != nil {
			t.Fatal(err)
		}
		if cube.Cells.N != len(counts) || len(cube.ids) != n || !slices.IsSorted(cube.ids) {
			t.Fatalf("%d cells, want %d; %d ids", cube.Cells.N, len(counts), len(cube.ids))
		}
		for i := range cube.Cells.N {
			var status int
			if _, err := fmt.Sscan(cube.Cells.Dims[Status].At(i), &status); err != nil {
				t.Fatal(err)
			}
			k := key{cube.Cells.Ints[Start][i], cube.Cells.Dims[Model].At(i), status}
			var h Histogram
			cube.Cells.Durations(i, &h)
			if cube.Cells.Count[i] != counts[k] || cube.Cells.Ints[Cost][i] != costs[k] || h.Count() != counts[k] {
				t.Fatalf("cell %+v: %d", k, cube.Cells.Count[i])
			}
		}
	})
}

func FuzzDecodeCube(f *testing.F) {
	b := newCubeBuilder()
	for i := range 5 {
		r := made(i, noon.Add(time.Duration(i)*time.Hour))
		b.add(&r)
	}
	encoded, err := b.encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(encoded)
	f.Add([]byte{cubeVersion, 0, 0, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decodeCube(b)
		if err != nil {
			return
		}
		var h Histogram
		for i := range c.Cells.N {
			c.Cells.Durations(i, &h)
			for d := range NumCubeDims {
				_ = c.Cells.Dims[d].At(i)
			}
		}
	})
}

func TestHistogramsMergeInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Int64Range(-5, 1<<50), 1, 200).Draw(t, "values")
		var whole, forward, backward Histogram
		parts := make([]Histogram, 4)
		for _, v := range values {
			whole.Add(v)
			parts[rapid.IntRange(0, 3).Draw(t, "part")].Add(v)
		}
		for i := range parts {
			forward.Merge(&parts[i])
			packed(parts[3-i].appendTo(nil)).mergeInto(&backward)
		}
		slices.Sort(values)
		for _, q := range []float64{0, 0.25, 0.5, 0.9, 0.99, 1} {
			want := whole.Quantile(q)
			if forward.Quantile(q) != want || backward.Quantile(q) != want {
				t.Fatalf("quantile %v: %v %v %v", q, want, forward.Quantile(q), backward.Quantile(q))
			}
			exact := float64(max(values[int(q*float64(len(values)-1))], 1))
			if math.Abs(want-exact) > 0.01001*exact {
				t.Fatalf("quantile %v is %v, exactly %v", q, want, exact)
			}
		}
	})
}

func TestCacheStaysWithinItsBytes(t *testing.T) {
	c := newCache(10_000)
	for i := range 100 {
		c.put(fmt.Sprint(i), i, 500)
		if _, ok := c.get("0"); !ok {
			t.Fatal("what is used left first")
		}
	}
	if c.used > 10_000 || len(c.items) < 10 || len(c.items) != c.order.Len() {
		t.Errorf("%d bytes in %d items", c.used, len(c.items))
	}
	if _, ok := c.get("50"); ok {
		t.Error("an old item stayed")
	}
	c.put("huge", 1, 5000)
	if _, ok := c.get("huge"); ok {
		t.Error("an item above a quarter of the limit was kept")
	}
}

func BenchmarkIngest(b *testing.B) {
	for _, bodies := range []int{0, 2000} {
		b.Run(fmt.Sprintf("records=1000/bodies=%d", bodies), func(b *testing.B) {
			h := newShelf(b)
			records := several(1000, noon)
			for i := range records {
				records[i].Bodies = []byte(strings.Repeat("x", bodies))
				records[i].TraceID = fmt.Sprintf("%032x", i*7919)
			}
			b.ReportAllocs()
			round := 0
			for b.Loop() {
				b.StopTimer()
				round++
				for i := range records {
					records[i].ID = made(round*1000+i, records[i].Start).ID
				}
				b.StartTimer()
				if err := h.Ingest(context.Background(), records); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestEveryValueIsInItsBucket(t *testing.T) {
	check := func(v int64) {
		b := bucketOf(v)
		if v > upper[b] || b > 0 && v <= upper[b-1] {
			t.Fatalf("%d is in bucket %d, from %d to %d", v, b, upper[max(b-1, 0)], upper[b])
		}
	}
	for v := range int64(5000) {
		check(v)
	}
	for _, u := range upper {
		check(u)
		check(max(u, u+1)) // the last one would overflow
	}
	rapid.Check(t, func(t *rapid.T) { check(rapid.Int64Min(0).Draw(t, "v")) })
}

func TestBodiesThatLieInAnObjectAlreadyStayThere(t *testing.T) {
	h := newShelf(t)
	if err := h.bucket.Put(context.Background(), "bodies/journal/1-0", []byte("..one..two")); err != nil {
		t.Fatal(err)
	}
	want := make(map[string]string)
	for i, p := range []usage.Pack{{Key: "bodies/journal/1-0", Offset: 2, Length: 3}, {}, {Key: "bodies/journal/1-0", Offset: 7, Length: 3}} {
		r := made(i, noon.Add(time.Duration(i)*time.Second))
		if r.Pack = p; p.Key == "" {
			r.Bodies = []byte("own")
		}
		want[r.ID] = []string{"one", "own", "two"}[i]
		h.ingest(t, r)
	}
	check := func(when string) {
		t.Helper()
		got := h.contents(t)
		for id, bodies := range want {
			if got[id] != bodies {
				t.Errorf("%s: %s has bodies %q, want %q", when, id, got[id], bodies)
			}
		}
	}
	check("ingested")
	h.compactAt(t, noon.Add(3*time.Hour))
	if n := len(h.all(t)); n != 1 {
		t.Errorf("%d segments after compaction", n)
	}
	check("compacted")
}

// A batch may bring more bodies than are gathered in memory at once.
func TestManyBodiesBecomeSeveralPacks(t *testing.T) {
	h := newShelf(t)
	records := several(10, noon)
	for i := range records {
		records[i].Bodies = bytes.Repeat([]byte{byte(i)}, maxPack/3+1)
	}
	h.ingest(t, records...)
	if n := len(h.all(t)); n != 4 {
		t.Errorf("%d segments", n)
	}
	got := h.contents(t)
	for i := range records {
		if got[records[i].ID] != string(records[i].Bodies) {
			t.Errorf("record %d has other bodies", i)
		}
	}
}

func TestCompactionRunsUntilItIsStopped(t *testing.T) {
	h := newShelf(t)
	for i := range 5 {
		h.ingest(t, made(i, noon.Add(time.Duration(i)*time.Second)))
	}
	h.now = noon.Add(time.Minute)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.CompactEvery(ctx, time.Hour, func(err error) { t.Error(err) })
	}()
	for len(h.all(t)) > 1 {
		time.Sleep(time.Millisecond)
	}
	stop()
	<-done
}
