package segment

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"gateway/shared/usage"
)

func TestLargeObjectsAreInTheBucket(t *testing.T) {
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
	b, err := h.objects.get(context.Background(), &h.all(t)[0], dataObject)
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

// Other tools skip pages by their bounds, so a file that they can see must have
// them; one in the store does without, but for Start.
func TestFilesInTheBucketHaveBounds(t *testing.T) {
	rows := make([]row, 3)
	for i, r := range several(len(rows), noon) {
		rows[i].fill(&r, bodyRef{}, nil)
	}
	for _, events := range []int{0, maxInline + 1} {
		err := encodeBatch(rows, events, maxInline, func(file []byte) error {
			f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
			if err != nil {
				return err
			}
			for i, path := range f.Schema().Columns() {
				_, _, bounded := f.RowGroups()[0].ColumnChunks()[i].(*parquet.FileColumnChunk).Bounds()
				if want := events > maxInline || path[0] == intColumns[Start]; bounded != want {
					t.Errorf("events of %d bytes: column %v has bounds: %v", events, path, bounded)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A file that was written before a column of texts was known has nothing in it.
func TestColumnsThatAFileDoesNotHaveAreEmpty(t *testing.T) {
	h := newShelf(t)
	h.ingest(t, several(3, noon)...)
	list := h.all(t)
	f, err := h.File(context.Background(), &list[0])
	if err != nil {
		t.Fatal(err)
	}
	before := *f.outline
	before.columns = map[string]int{}
	for name, i := range f.columns {
		if name != dimColumns[Experiment] {
			before.columns[name] = i
		}
	}
	f.outline, f.cache = &before, nil
	s, err := f.Strings(context.Background(), 0, Experiment)
	if err != nil || s.At(2) != "" || f.StringsWeight(0, Experiment) <= 0 {
		t.Errorf("%+v %v", s, err)
	}
}
