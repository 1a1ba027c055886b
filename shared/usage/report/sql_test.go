package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"gateway/shared/blob/files"
	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// sqlEngine is a folder with an engine that reads files by SQL: npm ci --prefix scripts/sql.
const sqlEngine = "../../../scripts/sql"

// runQuery queries the engine; %s in the query is the records of an organization's files, each once:
// replaced files remain for a while, and batches may be duplicated.
func runQuery(t *testing.T, dir, query string) (rows [][]any) {
	t.Helper()
	from := fmt.Sprintf(`(SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY id) AS n FROM read_parquet('%s/segments/data/org-1/*/*/*/*.parquet')) WHERE n = 1)`, dir)
	script := `const d = require("@duckdb/node-api");
d.DuckDBInstance.create(":memory:", {threads: "1"}).then(async i => {
	const r = await (await i.connect()).runAndReadAll(process.argv[1]);
	console.log(JSON.stringify(r.getRows(), (_, v) => typeof v === "bigint" ? Number(v) : v));
}).catch(e => { console.error(String(e)); process.exit(1); });`
	cmd := exec.Command("node", "-e", script, fmt.Sprintf(query, from))
	cmd.Dir = sqlEngine
	out, err := cmd.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			t.Fatalf("%v: %s", err, failed.Stderr)
		}
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &rows); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return rows
}

// Whoever points another tool at the files gets the responses of the API: groups, graphs
// and percentiles.
func TestSQLOverTheFilesAnswersTheSame(t *testing.T) {
	if _, err := os.Stat(filepath.Join(sqlEngine, "node_modules")); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("the engine that is asked is not installed: not allowed to be missing in CI")
		}
		t.Skip("NOT TESTED WITH SQL; run: npm ci --ignore-scripts --prefix scripts/sql")
	}
	h := newFixture(t)
	dir := t.TempDir()
	bucket, err := files.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	h.archive = segment.New(h.store, bucket, segment.Options{Inline: 1, Clock: func() time.Time { return h.now }})
	h.reader = New(h.archive, bucket)
	rnd := rand.New(rand.NewPCG(7, 7))
	const n = 6000
	start := noon.AddDate(0, 0, -3)
	var batch []usage.Record
	for i := range n {
		r := made(i, start.Add(time.Duration(i)*40*time.Second))
		r.Model, r.ClientStatus = fmt.Sprint("m", rnd.IntN(5)), []int{200, 200, 200, 429, 500}[rnd.IntN(5)]
		r.CacheStatus, r.EndUser = []string{"HIT", "MISS", "SEMANTIC HIT"}[rnd.IntN(3)], fmt.Sprint("u", rnd.IntN(40))
		r.Cost, r.Duration = pricing.NanoDollars(rnd.Int64N(1e9)), time.Duration(rnd.ExpFloat64()*float64(time.Second)).Truncate(time.Microsecond)
		r.Usage = pricing.Usage{}
		r.Usage.Set(pricing.Input, rnd.Int64N(4000))
		r.Usage.Set(pricing.Output, rnd.Int64N(900))
		batch = append(batch, r)
		if len(batch) == 250 {
			h.now = r.Start.Add(time.Minute)
			h.ingest(t, batch...)
			h.ingest(t, batch[100:150]...) // some come twice
			if i > n/2 {
				h.compact(t) // files of every tier, with those that merges replaced
			}
			batch = batch[:0]
		}
	}
	org := store.Scope{Org: "org-1"}
	f := Filter{From: start.Add(-time.Hour), To: start.AddDate(0, 0, 9)}
	groups, _, err := h.reader.Groups(context.Background(), org, &GroupQuery{Filter: f, By: "model", Columns: []string{"p95_latency", "p99_latency"}})
	if err != nil {
		t.Fatal(err)
	}
	rows := runQuery(t, dir, `SELECT model, count(*), sum(cost), sum(tokens_in), sum(tokens_out), sum(CASE WHEN status LIKE '2%%' THEN 0 ELSE 1 END),
		sum(CASE WHEN cache_status = 'HIT' THEN 1 ELSE 0 END), sum(CASE WHEN cache_status = 'SEMANTIC HIT' THEN 1 ELSE 0 END),
		quantile_disc(duration, 0.95), quantile_disc(duration, 0.99), epoch_us(min(start)), epoch_us(max(start)) FROM %s GROUP BY model ORDER BY count(*) DESC, model`)
	if len(groups) != 5 || len(rows) != len(groups) {
		t.Fatalf("%d groups and %d rows", len(groups), len(rows))
	}
	for i := range groups {
		g, row := &groups[i], rows[i]
		got := []int64{g.Requests, int64(g.Cost), g.TokensIn, g.TokensOut, g.Errors, g.Hits, g.Semantic}
		for k, v := range got {
			if number(t, row[1+k]) != float64(v) {
				t.Errorf("%s: number %d is %d, by SQL %v", g.Value, k, v, row[1+k])
			}
		}
		for k, q := range []float64{0.95, 0.99} {
			exact := number(t, row[8+k]) / 1000
			if est := g.Latency(q); g.Value != row[0] || math.Abs(est-exact) > 0.0101*exact {
				t.Errorf("%s: quantile %v is %v, by SQL %v of %v", g.Value, q, est, exact, row[0])
			}
		}
		if float64(g.First.UnixMicro()) != number(t, row[10]) || float64(g.Last.UnixMicro()) != number(t, row[11]) {
			t.Errorf("%s: from %s to %s, by SQL %v", g.Value, g.First, g.Last, row[10:])
		}
	}
	b, series, err := h.reader.series(context.Background(), org, &f, aspect{by: plain.by, users: true})
	if err != nil {
		t.Fatal(err)
	}
	byDay := map[int64][]any{}
	for _, row := range runQuery(t, dir, `SELECT epoch_us(date_trunc('day', start)) // 86400000000 AS day, count(*), sum(cost), count(DISTINCT end_user) FROM %s GROUP BY day`) {
		byDay[int64(number(t, row[0]))] = row
	}
	seen := 0
	for i := range series[""] {
		s := &series[""][i]
		if s.Requests == 0 {
			continue
		}
		seen++
		row := byDay[b.at(i).Unix()/86400]
		if row == nil || number(t, row[1]) != float64(s.Requests) || number(t, row[2]) != float64(s.Cost) || math.Abs(number(t, row[3])-float64(s.Users())) > 1 {
			t.Errorf("%s: %d requests of %d users, by SQL %v", b.at(i), s.Requests, s.Users(), row)
		}
	}
	if seen != len(byDay) {
		t.Errorf("%d days, by SQL %d", seen, len(byDay))
	}
}

// number is a value of the engine.
func number(t *testing.T, v any) float64 {
	t.Helper()
	switch v := v.(type) {
	case float64:
		return v
	case string:
		n, err := strconv.ParseFloat(v, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	t.Fatalf("%v is no number", v)
	return 0
}
