package athena

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// sqlEngine is a folder with an engine that reads files by SQL: npm ci --prefix scripts/sql.
const sqlEngine = "../../../scripts/sql"

// Names in the fake.
const (
	bucketName, workgroup, database, table = "files", "gateway", "gateway_usage", "requests"
)

// duck is the engine: one process that answers lines.
type duck struct {
	mu    sync.Mutex
	files string   // the pattern of those of the table
	table string   // makes the table, of the files that are there
	read  []string // the files that the table is of
	in    io.WriteCloser
	out   *bufio.Reader
}

const duckScript = `const d = require("@duckdb/node-api");
d.DuckDBInstance.create(":memory:", {threads: "1"}).then(async i => {
	const c = await i.connect();
	for await (const line of require("readline").createInterface({input: process.stdin})) {
		try {
			const r = await c.runAndReadAll(JSON.parse(line));
			const text = v => v === null ? null : String(v);
			console.log(JSON.stringify({columns: r.columnNames(), rows: r.getRows().map(row => row.map(text))}));
		} catch (e) { console.log(JSON.stringify({error: String(e)})); }
	}
});`

type answer struct {
	Columns []string    `json:"columns"`
	Rows    [][]*string `json:"rows"`
	Error   string      `json:"error"`
}

// query answers from the files that exist now. Files never change, so the engine reads them
// again only after files were added or removed.
func (d *duck) query(sql string) (a answer, err error) {
	now, err := filepath.Glob(d.files)
	if err != nil {
		return a, err
	}
	if !slices.Equal(now, d.read) {
		if a, err = d.runSQL(d.table); err != nil || a.Error != "" {
			return a, err
		}
		d.read = now
	}
	return d.runSQL(sql)
}

func (d *duck) runSQL(sql string) (a answer, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	line, err := json.Marshal(sql)
	if err != nil {
		return a, err
	}
	if _, err := d.in.Write(append(line, '\n')); err != nil {
		return a, err
	}
	out, err := d.out.ReadBytes('\n')
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(out, &a)
}

// startDuck starts the engine with the table of the files below dir, as the stack of
// tables defines it, and the functions of Athena that the engine spells otherwise.
func startDuck(t testing.TB, dir string) *duck {
	t.Helper()
	if _, err := os.Stat(filepath.Join(sqlEngine, "node_modules")); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal("the engine that is asked is not installed: not allowed to be missing in CI")
		}
		t.Skip("NOT TESTED WITH SQL; run: npm ci --ignore-scripts --prefix scripts/sql")
	}
	cmd := exec.Command("node", "-e", duckScript)
	cmd.Dir, cmd.Stderr = sqlEngine, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	d := &duck{in: in, out: bufio.NewReaderSize(out, 1<<20), files: dir + "/segments/data/*/*/*/*/*.parquet"}
	for _, sql := range []string{
		`CREATE SCHEMA "` + database + `"`,
		`CREATE MACRO element_at(m, k) AS map_extract_value(m, k)`,
		`CREATE MACRO to_unixtime(t) AS epoch_us(t) / 1000000.0`,
		`CREATE MACRO array_join(a, s) AS array_to_string(a, s)`,
	} {
		if a, err := d.runSQL(sql); err != nil || a.Error != "" {
			t.Fatalf("%s: %v %s", sql, err, a.Error)
		}
	}
	d.table = fmt.Sprintf(`CREATE OR REPLACE TABLE "%s"."%s" AS SELECT * EXCLUDE (filename), 's3://%s/' || substr(filename, %d) AS "$path",
			split_part(substr(filename, %d), '/', 3) AS "org", array_to_string(split(substr(filename, %d), '/')[4:6], '/') AS "day"
			FROM read_parquet('%s', filename = true, union_by_name = true)`,
		database, table, bucketName, len(dir)+2, len(dir)+2, len(dir)+2, d.files)
	return d
}

// functionNames are the functions and words that Athena has before a parenthesis. Others that the test
// engine would accept are errors here.
var functionNames = []string{
	"array_agg", "array_join", "array_position", "cast", "ceil", "chr", "coalesce", "count", "date_diff", "element_at", "floor", "length", "ln", "max", "min",
	"row_number", "substr", "sum", "to_unixtime",
	"and", "as", "by", "from", "in", "not", "or", "over", "when", "where", "all",
}

var (
	literals = regexp.MustCompile(`'(?:[^']|'')*'`)
	called   = regexp.MustCompile(`([a-z_0-9]+)\s*\(`)
	strange  = regexp.MustCompile("::|//|`|\\\\|;|\\bqualify\\b|\\bexclude\\b|\\bilike\\b")
	whole    = regexp.MustCompile(`[0-9]\s*/\s*[0-9]`) // integers divide to integers there
)

// dialect returns the first construct of a query that Athena would reject.
func dialect(sql string) error {
	bare := strings.ToLower(literals.ReplaceAllString(sql, "''"))
	for _, m := range called.FindAllStringSubmatch(bare, -1) {
		if !slices.Contains(functionNames, m[1]) {
			return fmt.Errorf("the function %s is not known", m[1])
		}
	}
	for _, re := range []*regexp.Regexp{strange, whole} {
		if m := re.FindString(bare); m != "" {
			return fmt.Errorf("%q is not of the dialect", m)
		}
	}
	if !strings.Contains(sql, `"org" = '`) {
		return fmt.Errorf("CONSTRAINT_VIOLATION: For the injected projected partition column org, the WHERE clause must contain only static equality conditions")
	}
	return nil
}

// service is a strict Athena with one workgroup: it accepts only the fields of the API
// reference, in their exact spelling, enforces its limits, and runs queries.
type service struct {
	t  testing.TB
	on *duck

	mu      sync.Mutex
	queries map[string]*query // by id
	tokens  map[string]string // ids by token
	calls   []string

	looks    int    // at a query before it has ended
	fails    string // reason for which queries fail; "": they do not
	ends     string // what such a query ends as; FAILED when ""
	failures int    // so many of them are left
	throttle int    // so many calls are rejected for their number
	page     int    // rows of a page at most
	reads    int64  // bytes that a query reports as read
	looked   func() // is called at each look, nil: nothing is
}

type query struct {
	sql   string
	looks int
	answer
	reason string
	ends   string // of one that has a reason
}

func newService(t testing.TB, on *duck) (*service, aws.Config) {
	s := &service{t: t, on: on, queries: map[string]*query{}, tokens: map[string]string{}, page: 1000}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, aws.Config{Region: "eu-west-1", BaseEndpoint: aws.String(server.URL), Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", "")}
}

// set changes the service's behavior. A call with a disconnected caller may still be processed.
func (s *service) set(change func()) { s.mu.Lock(); defer s.mu.Unlock(); change() }

// end lets all queries end. s.mu is held.
func (s *service) end() {
	for _, q := range s.queries {
		q.looks = 0
	}
}

// started is how many queries there were.
func (s *service) started() int { s.mu.Lock(); defer s.mu.Unlock(); return len(s.queries) }

func (s *service) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	action, ours := strings.CutPrefix(req.Header.Get("X-Amz-Target"), "AmazonAthena.")
	s.calls = append(s.calls, action)
	signed := req.Header.Get("Authorization")
	if req.Method != http.MethodPost || req.URL.Path != "/" || !ours || req.Header.Get("Content-Type") != "application/x-amz-json-1.1" ||
		!strings.HasPrefix(signed, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/") || !strings.Contains(signed, "/eu-west-1/athena/aws4_request") {
		s.t.Errorf("%s %s of %q, %q, signed %q", req.Method, req.URL, action, req.Header.Get("Content-Type"), signed)
	}
	if s.throttle > 0 {
		s.throttle--
		refuse(w, "TooManyRequestsException", "Rate exceeded")
		return
	}
	var in map[string]any
	if err := json.NewDecoder(req.Body).Decode(&in); err != nil {
		refuse(w, "SerializationException", err.Error())
		return
	}
	members := map[string][]string{
		"StartQueryExecution": {"QueryString", "ClientRequestToken", "WorkGroup", "QueryExecutionContext"},
		"GetQueryExecution":   {"QueryExecutionId"},
		"GetQueryResults":     {"QueryExecutionId", "MaxResults", "NextToken"},
	}[action]
	for name := range in {
		if !slices.Contains(members, name) {
			refuse(w, "InvalidRequestException", action+" has no "+name)
			return
		}
	}
	out, err := map[string]func(map[string]any) (any, error){"StartQueryExecution": s.start, "GetQueryExecution": s.look, "GetQueryResults": s.results}[action](in)
	if err != nil {
		refuse(w, "InvalidRequestException", err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	_ = json.NewEncoder(w).Encode(out)
}

func refuse(w http.ResponseWriter, kind, message string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(400)
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": kind, "Message": message})
}

func (s *service) start(in map[string]any) (any, error) {
	sql, _ := in["QueryString"].(string)
	token, _ := in["ClientRequestToken"].(string)
	context, _ := in["QueryExecutionContext"].(map[string]any)
	switch {
	case len(sql) < 1 || len(sql) > 262_144:
		return nil, fmt.Errorf("QueryString has %d bytes", len(sql))
	case len(token) < 32 || len(token) > 128:
		return nil, fmt.Errorf("ClientRequestToken has %d characters", len(token))
	case in["WorkGroup"] != workgroup || context["Database"] != database || len(context) != 1:
		return nil, fmt.Errorf("WorkGroup %v, QueryExecutionContext %v", in["WorkGroup"], context)
	}
	if id, known := s.tokens[token]; known {
		if s.queries[id].sql != sql {
			return nil, fmt.Errorf("Idempotent parameters do not match")
		}
		return map[string]string{"QueryExecutionId": id}, nil
	}
	q := &query{sql: sql, looks: s.looks, ends: cmp.Or(s.ends, "FAILED")}
	if s.fails != "" && s.failures > 0 {
		s.failures--
		q.reason = s.fails
	}
	if err := dialect(sql); err != nil {
		q.reason = err.Error()
		s.t.Errorf("%v: %s", err, sql)
	} else if q.reason == "" {
		if q.answer, err = s.on.query(sql); err != nil {
			s.t.Error(err)
		}
		if q.reason = q.Error; q.reason != "" {
			s.t.Errorf("%s: %s", q.reason, sql)
		}
	}
	id := fmt.Sprintf("00000000-0000-0000-0000-%012d", len(s.queries))
	s.queries[id], s.tokens[token] = q, id
	return map[string]string{"QueryExecutionId": id}, nil
}

// found is the query that a call names.
func (s *service) found(in map[string]any) (*query, error) {
	id, _ := in["QueryExecutionId"].(string)
	if q := s.queries[id]; q != nil {
		return q, nil
	}
	return nil, fmt.Errorf("QueryExecution %s was not found", id)
}

func (q *query) state() string {
	switch {
	case q.looks > 1:
		return "QUEUED"
	case q.looks > 0:
		return "RUNNING"
	case q.reason != "":
		return q.ends
	}
	return "SUCCEEDED"
}

func (s *service) look(in map[string]any) (any, error) {
	q, err := s.found(in)
	if err != nil {
		return nil, err
	}
	if s.looked != nil {
		s.looked()
	}
	status := map[string]any{"State": q.state(), "SubmissionDateTime": 1.7e9}
	if q.looks--; q.looks < 0 {
		q.looks = 0
	}
	if q.reason != "" && status["State"] == q.ends {
		status["StateChangeReason"] = q.reason
	}
	return map[string]any{"QueryExecution": map[string]any{"Status": status, "Statistics": map[string]any{"DataScannedInBytes": s.reads}}}, nil
}

func (s *service) results(in map[string]any) (any, error) {
	q, err := s.found(in)
	if err != nil {
		return nil, err
	}
	if state := q.state(); state != "SUCCEEDED" {
		return nil, fmt.Errorf("Query did not finish successfully. Final query state: %s", state)
	}
	most, _ := in["MaxResults"].(float64)
	if most < 1 || most > 1000 {
		return nil, fmt.Errorf("MaxResults is %v", most)
	}
	from := 0
	if token, ok := in["NextToken"].(string); ok {
		if _, err := fmt.Sscan(token, &from); err != nil {
			return nil, err
		}
	}
	head := make([]*string, len(q.Columns))
	for i := range q.Columns {
		head[i] = &q.Columns[i]
	}
	all := append([][]*string{head}, q.Rows...)
	to := min(from+min(int(most), s.page), len(all))
	rows := []any{}
	for _, row := range all[from:to] {
		data := []any{}
		for _, v := range row {
			if v == nil {
				data = append(data, map[string]any{})
			} else {
				data = append(data, map[string]any{"VarCharValue": *v})
			}
		}
		rows = append(rows, map[string]any{"Data": data})
	}
	out := map[string]any{"ResultSet": map[string]any{"Rows": rows, "ResultSetMetadata": map[string]any{"ColumnInfo": []any{}}}, "UpdateCount": 0}
	if to < len(all) {
		out["NextToken"] = fmt.Sprint(to)
	}
	return out, nil
}
