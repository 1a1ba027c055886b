package export

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"gateway/shared/usage"
)

// rowsOf are the rows of a Parquet file, a line of values each.
func rowsOf(t testing.TB, b []byte) string {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	r := parquet.NewReader(f)
	defer r.Close()
	var out strings.Builder
	row := make([]parquet.Row, 7)
	for read := int64(0); read < f.NumRows(); {
		n, err := r.ReadRows(row)
		if read += int64(n); n == 0 {
			t.Fatalf("%d of %d rows: %v", read, f.NumRows(), err)
		}
		for _, values := range row[:n] {
			for i, v := range values {
				if i > 0 {
					out.WriteByte(' ')
				}
				out.WriteString(v.String())
			}
			out.WriteByte('\n')
		}
	}
	return out.String()
}

// read gives a file to a reader that shares no code with the one that writes it: its
// columns in order, and its rows.
func read(t *testing.T, file []byte) (columns []string, rows []map[string]any) {
	t.Helper()
	deps, err := filepath.Abs("../../../scripts/testdeps")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(deps, "node_modules", "hyparquet")); err != nil {
		t.Skipf("NOT TESTED WITH ANOTHER READER OF PARQUET: %v; run: npm ci --prefix scripts/testdeps", err)
	}
	name := filepath.Join(t.TempDir(), "logs.parquet")
	if err := os.WriteFile(name, file, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(deps, "parquet.mjs"), name)
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v %s", err, failed.String())
	}
	var got struct {
		Columns []string
		Rows    []map[string]any
	}
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	return got.Columns, got.Rows
}

// Another reader finds in a file of several parts what lines have, by every codec.
func TestParquetEqualsLines(t *testing.T) {
	h := newFixture(t)
	h.fill(200, func(i int, r *usage.Record) {
		if i%7 == 0 {
			r.ClientStatus, r.Provider, r.Model, r.RequestModel = 400, "", "", "=m"
			return
		}
		r.Metadata = map[string]string{"team": fmt.Sprint("ä", i)}
		b := usage.Bodies{RequestHeaders: []byte(`{"User-Agent":"x"}`), Request: []byte(`{"model":"m"}`), Response: bytes.Repeat([]byte("x"), i)}
		sealed, err := h.sealer.Seal(context.Background(), r.BodiesBinding(), b.Append(nil))
		if err != nil {
			t.Fatal(err)
		}
		r.Bodies = sealed
	})
	o := h.order(Fields()...)
	slices.Reverse(o.Fields)
	o.Bodies = true
	h.start("lines", o)
	h.finish()
	var want []map[string]any
	for line := range strings.Lines(h.file(h.run("lines"))) {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"request", "response", "metadata"} {
			text, err := json.Marshal(row[name])
			if err != nil {
				t.Fatal(err)
			}
			row[name] = string(text)
		}
		want = append(want, row)
	}
	o.Format = Parquet
	for _, o.Codec = range []string{"", Gzip, Snappy, Zstd} {
		h.start("columns"+o.Codec, o)
		h.finish()
		r := h.run("columns" + o.Codec)
		if keys, err := h.bucket.List(t.Context(), r.Key, "", 10); err != nil || len(keys) != 1 {
			t.Errorf("%s leaves %v: %v", o.Codec, keys, err)
		}
		file, err := h.bucket.Get(t.Context(), r.Key, 0)
		if err != nil {
			t.Fatal(err)
		}
		columns, rows := read(t, file)
		if !slices.Equal(columns, o.Fields) || len(rows) != len(want) {
			t.Fatalf("%q: %d of %d rows, %v", o.Codec, len(rows), len(want), columns)
		}
		for i := range rows {
			for _, name := range []string{"request", "response", "metadata"} {
				var v any
				if err := json.Unmarshal([]byte(rows[i][name].(string)), &v); err != nil {
					t.Fatal(err)
				}
				text, _ := json.Marshal(v)
				rows[i][name] = string(text)
			}
			at, err := time.Parse(time.RFC3339, rows[i]["created_at"].(string))
			if err != nil {
				t.Fatal(err)
			}
			if rows[i]["created_at"] = at.Format(time.RFC3339Nano); !reflect.DeepEqual(rows[i], want[i]) {
				t.Fatalf("%q: row %d: %v\nwant %v", o.Codec, i, rows[i], want[i])
			}
		}
	}
}

// A file without logs has its columns.
func TestParquetWithoutLogs(t *testing.T) {
	h := newFixture(t)
	o := h.order("id", "cost")
	o.Format = Parquet
	h.start("a", o)
	h.finish()
	file, err := h.bucket.Get(t.Context(), h.run("a").Key, 0)
	if err != nil {
		t.Fatal(err)
	}
	if columns, rows := read(t, file); !slices.Equal(columns, o.Fields) || len(rows) != 0 {
		t.Errorf("%v %v", columns, rows)
	}
}

// The written part of a file is in the bucket and not in memory, and so are the statistics of
// its columns, which would otherwise store bodies in the footer.
func TestParquetTakesTheMemoryOfAPart(t *testing.T) {
	const most = 1 << 20
	w := newColumns(&Order{Format: Parquet, Fields: []string{"id", "request"}}, 0, most, nil)
	l := &line{Record: &usage.Record{}, bodies: &usage.Bodies{}}
	var before, after runtime.MemStats
	written, indexes, parts := 0, 0, 0
	for i := 0; parts < 60; i++ {
		l.ID, l.bodies.Request = fmt.Sprint(i), bytes.Repeat([]byte(fmt.Sprint(i)), 4000)
		if err := w.record(l); err != nil {
			t.Fatal(err)
		}
		if w.size() < most/2 {
			continue
		}
		body, index, err := w.part(t.Context(), false)
		if err != nil {
			t.Fatal(err)
		}
		parts, written, indexes = parts+1, written+len(body), indexes+len(index)
		w.next()
		if parts == 10 || parts == 60 {
			runtime.GC()
			runtime.ReadMemStats(&after)
			if parts == 10 {
				before = after
			}
		}
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); written < 50*most/2 || grown > 8*most || indexes > 60*4<<10 {
		t.Errorf("%d bytes in %d of memory, %d of indexes", written, grown, indexes)
	}
}
