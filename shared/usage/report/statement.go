package report

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gateway/shared/pricing"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// Limits of a query's text, in bytes: Athena accepts maxText for the complete query.
const (
	maxText    = 262_144
	maxFiles   = 6000 // 15 bytes each
	mostValues = 80 << 10
)

// measure is a number of Stats and its SQL aggregate.
type measure struct {
	name, sum string
	set       func(*Stats, int64)
}

const (
	isError    = `CASE WHEN length("status") = 3 AND substr("status", 1, 1) = '2' OR "status" = '101' THEN 0 ELSE 1 END`
	ifHit      = `CASE WHEN "cache_status" = 'HIT' THEN %s ELSE 0 END`
	ifSemantic = `CASE WHEN "cache_status" = 'SEMANTIC HIT' THEN %s ELSE 0 END`
	ifAnyHit   = `CASE WHEN "cache_status" IN ('HIT', 'SEMANTIC HIT') THEN %s ELSE 0 END`
	sinceEpoch = `date_diff('millisecond', timestamp '1970-01-01 00:00:00', %s("start"))`
)

func summed(of string) string { return "coalesce(sum(" + of + "), 0)" }

// measures are the columns of a row after its group and its bucket. All are sums, except
// the first and the last time, which Athena has only to the millisecond.
var measures = []measure{
	{"requests", "count(*)", func(s *Stats, n int64) { s.Requests = n }},
	{"errors", summed(isError), func(s *Stats, n int64) { s.Errors = n }},
	{"hits", summed(fmt.Sprintf(ifHit, "1")), func(s *Stats, n int64) { s.Hits = n }},
	{"semantic", summed(fmt.Sprintf(ifSemantic, "1")), func(s *Stats, n int64) { s.Semantic = n }},
	{"cost_sum", summed(`"cost"`), func(s *Stats, n int64) { s.Cost = pricing.NanoDollars(n) }},
	{"saved", summed(`"cache_saved"`), func(s *Stats, n int64) { s.Saved = pricing.NanoDollars(n) }},
	{"running", summed(`"gateway_cost"`), func(s *Stats, n int64) { s.Running = pricing.NanoDollars(n) }},
	{"input", summed(`"tokens_in"`), func(s *Stats, n int64) { s.TokensIn = n }},
	{"output", summed(`"tokens_out"`), func(s *Stats, n int64) { s.TokensOut = n }},
	{"users", summed(`"with_user"`), func(s *Stats, n int64) { s.WithUser = n }},
	{"took", summed(`"duration"`), func(s *Stats, n int64) { s.Duration = time.Duration(n) * time.Microsecond }},
	{"simple_saved", summed(fmt.Sprintf(ifHit, `"cache_saved"`)), func(s *Stats, n int64) { s.simpleSaved = pricing.NanoDollars(n) }},
	{"hit_time", summed(fmt.Sprintf(ifAnyHit, `"duration"`)), func(s *Stats, n int64) { s.hitTime = time.Duration(n) * time.Microsecond }},
	{"first_ms", fmt.Sprintf(sinceEpoch, "min"), func(s *Stats, n int64) { s.first = n * 1000 }},
	{"last_ms", fmt.Sprintf(sinceEpoch, "max"), func(s *Stats, n int64) { s.last = n * 1000 }},
}

// orders are expressions for the columns of groups in terms of measures. They compute the
// same as columnOf.
var orders = map[string]string{
	"requests": "requests", "cost": "cost_sum", "gateway_cost": "running", "total_tokens": "input + output",
	"avg_tokens":        "cast(input + output AS double) / cast(requests AS double)",
	"avg_input_tokens":  "cast(input AS double) / cast(requests AS double)",
	"avg_output_tokens": "cast(output AS double) / cast(requests AS double)",
	"avg_latency":       "cast(took AS double) / 1e3 / cast(requests AS double)",
	"success_rate":      "1e2 * cast(requests - errors AS double) / cast(requests AS double)",
	"error_count":       "errors",
	"cache_hit_rate":    "1e2 * cast(hits + semantic AS double) / cast(requests AS double)",
	"last_seen":         "last_ms", "first_seen": "first_ms",
}

// statement writes the SQL queries on the files.
type statement struct {
	engine  SQLEngine
	plan    *plan
	covered *coverage
	aspect  aspect
	buckets buckets
}

// text returns a literal. A query must not contain NUL, which is written as its code.
func text(v string) string {
	quoted := "'" + strings.ReplaceAll(v, "'", "''") + "'"
	if !strings.Contains(quoted, "\x00") {
		return quoted
	}
	return "(" + strings.ReplaceAll(quoted, "\x00", "' || chr(0) || '") + ")"
}

// sendable reports whether a query can be sent to the engine. Text that is not UTF-8
// would be altered.
func sendable(query string) bool { return len(query) <= maxText && utf8.ValidString(query) }

func texts(values []string) string {
	quoted := make([]string, len(values))
	for i, v := range values {
		quoted[i] = text(v)
	}
	return strings.Join(quoted, ", ")
}

// column returns a text column; older files may not have it.
func column(name string) string { return `coalesce("` + name + `", '')` }

func moment(micros int64) string {
	return "timestamp '" + time.UnixMicro(micros).UTC().Format("2006-01-02 15:04:05.000") + "'"
}

// expressible reports whether the plan can be written in SQL.
func (p *plan) expressible() bool {
	size := 0
	count := func(v string) { size += len(text(v)) + 6 }
	for _, set := range p.dims {
		for v := range set {
			count(v)
		}
	}
	for key, v := range p.metadata {
		count(key)
		count(v)
	}
	for _, pm := range p.models {
		count(pm.Provider + pm.Model + strings.Repeat(" ", 40))
	}
	for ws := range p.cut.Overrides() {
		count(ws + strings.Repeat(" ", 70))
	}
	for _, b := range p.ranges {
		if slices.Contains(b.of, segment.Start) {
			return false // no record matches
		}
	}
	return size <= mostValues
}

// value is the expression by which records are grouped.
func (s *statement) value() string {
	switch {
	case s.aspect.metadataKey != "":
		return `element_at("metadata", ` + text(s.aspect.metadataKey) + `)`
	case s.aspect.by < segment.NumDims:
		return column(segment.Column(s.aspect.by))
	}
	return "''"
}

// bucket is the expression for the bucket of a record. The starts of hours are whole
// seconds.
func (s *statement) bucket() string {
	if s.buckets.n == 1 {
		return "0"
	}
	return fmt.Sprintf(`cast(floor((to_unixtime("start") - %de0) / %de0) AS bigint)`, s.buckets.from/1_000_000, s.buckets.width/1_000_000)
}

// where returns the condition for the filter and the log retention.
func (s *statement) where() string {
	p := s.plan
	conds := []string{`"start" >= ` + moment(s.covered.from), `"start" < ` + moment(s.covered.to)}
	for d, set := range p.dims {
		if set != nil {
			conds = append(conds, column(segment.Column(segment.Dim(d)))+" IN ("+texts(slices.Sorted(maps.Keys(set)))+")")
		}
	}
	if p.requests {
		conds = append(conds, column(segment.Column(segment.Endpoint))+" <> "+text(usage.EndpointSpan))
	}
	for _, key := range slices.Sorted(maps.Keys(p.metadata)) {
		conds = append(conds, `element_at("metadata", `+text(key)+`) = `+text(p.metadata[key]))
	}
	if len(p.models) > 0 {
		var any []string
		for _, pm := range p.models {
			any = append(any, column("provider")+" = "+text(pm.Provider)+" AND "+column("model")+" = "+text(pm.Model))
		}
		conds = append(conds, "("+strings.Join(any, " OR ")+")")
	}
	for i := range p.ranges {
		var of []string
		for _, n := range p.ranges[i].of {
			of = append(of, `"`+segment.NumberColumn(n)+`"`)
		}
		if least := p.ranges[i].Min; least != nil {
			conds = append(conds, strings.Join(of, " + ")+" >= "+strconv.FormatInt(*least, 10))
		}
		if most := p.ranges[i].Max; most != nil {
			conds = append(conds, strings.Join(of, " + ")+" <= "+strconv.FormatInt(*most, 10))
		}
	}
	if s.aspect.metadataKey != "" {
		conds = append(conds, s.value()+" IS NOT NULL")
	}
	return strings.Join(append(conds, s.retained()...), " AND ")
}

// retained returns the conditions for the log retention of workspaces.
func (s *statement) retained() (conds []string) {
	cut := &s.plan.cut
	if cut.Most() <= s.covered.from {
		return nil
	}
	own := cut.Overrides()
	names := slices.Sorted(maps.Keys(own))
	for _, ws := range names {
		if own[ws] > s.covered.from {
			conds = append(conds, fmt.Sprintf(`(%s <> %s OR "start" >= %s)`, column("workspace"), text(ws), moment(own[ws])))
		}
	}
	if first := cut.First(""); first > s.covered.from {
		others := ""
		if len(names) > 0 {
			others = column("workspace") + " IN (" + texts(names) + ") OR "
		}
		conds = append(conds, "("+others+`"start" >= `+moment(first)+")")
	}
	return conds
}

// source selects the records in the covered files without duplicates. Files that may
// share records are read separately, and the most merged one has precedence, as in this
// process: see segment.Parts. The remaining files of these days were replaced by a merge.
func (s *statement) source() string {
	var plain, common []string
	for i := range s.covered.parts {
		part := &s.covered.parts[i]
		if part.Overlaps() || part.Overlapped() {
			common = append(common, part.FileID())
		} else {
			plain = append(plain, part.FileID())
		}
	}
	day := func(micros int64) string { return text(time.UnixMicro(micros).UTC().Format("2006/01/02")) }
	files := fmt.Sprintf(`FROM %s WHERE "org" = %s AND "day" BETWEEN %s AND %s AND %s IN (`, s.engine.Table(), text(url.PathEscape(s.plan.org)), day(s.covered.from), day(s.covered.to-1), fileID)
	columns := s.columns()
	var sources []string
	if len(plain) > 0 {
		sources = append(sources, "SELECT "+columns+" "+files+texts(plain)+")")
	}
	if len(common) > 0 {
		sources = append(sources, "SELECT "+columns+" FROM (SELECT "+columns+`, row_number() OVER (PARTITION BY "id" ORDER BY array_position(ARRAY[`+texts(common)+"], "+fileID+")) AS nth "+
			files+texts(common)+")) WHERE nth = 1")
	}
	return "(" + strings.Join(sources, " UNION ALL ") + ")"
}

// fileID is the expression for segment's FileID, taken from the path of a record's file.
var fileID = fmt.Sprintf(`substr("$path", -%d, %d)`, segment.FileIDEnd, segment.FileIDEnd-len(".parquet"))

// columns returns the columns that the query needs.
func (s *statement) columns() string {
	need := map[string]bool{"id": true, "start": true, "status": true, "cache_status": true, "workspace": true}
	for _, i := range []segment.Int{segment.Cost, segment.Saved, segment.Running, segment.TokensIn, segment.TokensOut, segment.WithUser, segment.Duration} {
		need[segment.NumberColumn(i)] = true
	}
	for d, set := range s.plan.dims {
		if set != nil {
			need[segment.Column(segment.Dim(d))] = true
		}
	}
	if s.plan.requests {
		need[segment.Column(segment.Endpoint)] = true
	}
	if len(s.plan.models) > 0 {
		need["provider"], need["model"] = true, true
	}
	if len(s.plan.metadata) > 0 || s.aspect.metadataKey != "" {
		need["metadata"] = true
	}
	if s.aspect.by < segment.NumDims {
		need[segment.Column(s.aspect.by)] = true
	}
	return `"` + strings.Join(slices.Sorted(maps.Keys(need)), `", "`) + `"`
}

// sums are the measures with their names.
func sums() string {
	list := make([]string, len(measures))
	for i, m := range measures {
		list[i] = m.sum + " AS " + m.name
	}
	return strings.Join(list, ", ")
}

func measureNames() string {
	list := make([]string, len(measures))
	for i, m := range measures {
		list[i] = m.name
	}
	return strings.Join(list, ", ")
}

// stats selects the measures of each group and bucket.
func (s *statement) stats(most int) string {
	return fmt.Sprintf("SELECT %s AS value, %s AS bucket, %s FROM %s WHERE %s GROUP BY 1, 2 LIMIT %d", s.value(), s.bucket(), sums(), s.source(), s.where(), most)
}

// bins selects the latencies of each group and bucket, only of the given groups if there
// are any.
func (s *statement) bins(of []string, most int) string {
	where := s.where()
	if len(of) > 0 {
		where += " AND " + s.value() + " IN (" + texts(of) + ")"
	}
	bin := fmt.Sprintf(`CASE WHEN "duration" <= 1 THEN 0 ELSE cast(ceil(ln(cast("duration" AS double)) / %s) AS bigint) END`, strconv.FormatFloat(math.Log(segment.Gamma), 'e', -1, 64))
	inner := fmt.Sprintf("SELECT %s AS value, %s AS bucket, %s AS bin, count(*) AS n FROM %s WHERE %s GROUP BY 1, 2, 3", s.value(), s.bucket(), bin, s.source(), where)
	return "SELECT value, bucket, array_join(array_agg(cast(bin AS varchar) || ':' || cast(n AS varchar)), ' ') AS bins FROM (" + inner + ") GROUP BY 1, 2 LIMIT " + strconv.Itoa(most)
}

// ranked selects the measures of the groups near, and of the first other groups in order.
// Each row also has the number of groups of its kind. The query reads the files once.
func (s *statement) ranked(q *GroupQuery, near []string, wanted int) string {
	by, direction := orders[q.OrderBy], "DESC"
	if by == "" {
		by = orders["requests"]
	}
	if q.Ascending {
		direction = "ASC"
	}
	near01 := "0"
	if len(near) > 0 {
		near01 = "CASE WHEN value IN (" + texts(near) + ") THEN 1 ELSE 0 END"
	}
	groups := fmt.Sprintf("SELECT %s AS value, %s FROM %s WHERE %s GROUP BY 1", s.value(), sums(), s.source(), s.where())
	marked := fmt.Sprintf("SELECT value, %s AS near, %s FROM (%s)%s", near01, measureNames(), groups, s.withValue())
	placed := fmt.Sprintf("SELECT value, near, %s, count(*) OVER (PARTITION BY near) AS n, row_number() OVER (PARTITION BY near ORDER BY %s %s, value) AS nth FROM (%s)",
		measureNames(), by, direction, marked)
	return fmt.Sprintf("SELECT value, n, near, %s FROM (%s) WHERE near = 1 OR nth <= %d", measureNames(), placed, wanted)
}

// withValue excludes requests without a value, which are in no group.
func (s *statement) withValue() string {
	if s.aspect.metadataKey != "" {
		return ""
	}
	return " WHERE value <> ''"
}
