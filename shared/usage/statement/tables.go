package statement

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// table reads rows by column name; each name may have several spellings.
type table struct {
	rows [][]string
	at   map[string]int
	row  []string
}

func openTable(raw []byte) (*table, error) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(raw, []byte("\ufeff"))))
	r.FieldsPerRecord = 0 // as many as the first row has
	rows, err := r.ReadAll()
	if err != nil || len(rows) == 0 {
		return nil, errors.New("it is not a table of comma-separated values with a heading")
	}
	t := &table{rows: rows[1:], at: map[string]int{}}
	for i, name := range rows[0] {
		t.at[plainName(name)] = i
	}
	return t, nil
}

// plainName maps lineItem/UsageStartDate and line_item_usage_start_date to the same name.
func plainName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return -1
	}, s)
}

func (t *table) has(names ...string) bool {
	for _, n := range names {
		if _, ok := t.at[n]; ok {
			return true
		}
	}
	return false
}

func (t *table) get(names ...string) string {
	for _, n := range names {
		if i, ok := t.at[n]; ok {
			return strings.TrimSpace(t.row[i])
		}
	}
	return ""
}

func (t *table) count(names ...string) (*int64, error) {
	v, err := t.number(names...)
	if err != nil || v == nil {
		return nil, err
	}
	n, err := checked(names[0], *v)
	return &n, err
}

func (t *table) number(names ...string) (*float64, error) {
	text := t.get(names...)
	if text == "" {
		return nil, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("%s must be a number", names[0])
	}
	return &v, nil
}

var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02 15:04:05", time.DateOnly}

func moment(text string) (time.Time, bool) {
	for _, layout := range layouts {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// plainCSV reads a table with a column start or date. It may also have end, model,
// requests, input_tokens, cached_tokens, output_tokens and cost_usd. A line without an end
// is for a day.
func plainCSV(raw []byte) (lines []Line, err error) {
	t, err := openTable(raw)
	if err != nil {
		return nil, err
	}
	if !t.has("start", "date") {
		return nil, errors.New("it needs a column start or date")
	}
	for i, row := range t.rows {
		t.row = row
		l, err := t.plain()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func (t *table) plain() (l Line, err error) {
	var ok bool
	if l.Start, ok = moment(t.get("start", "date")); !ok {
		return l, errors.New("start must be a date or a time")
	}
	l.End = l.Start.AddDate(0, 0, 1)
	if end := t.get("end"); end != "" {
		if l.End, ok = moment(end); !ok {
			return l, errors.New("end must be a date or a time")
		}
	}
	l.Model = t.get("model")
	for _, c := range []struct {
		to    **int64
		names []string
	}{{&l.Requests, []string{"requests"}}, {&l.Input, []string{"inputtokens"}}, {&l.Cached, []string{"cachedtokens"}}, {&l.Output, []string{"outputtokens"}}} {
		if *c.to, err = t.count(c.names...); err != nil {
			return l, err
		}
	}
	if cost := t.get("costusd", "cost"); cost != "" {
		l.Cost, err = dollars(cost, "", 1)
	}
	return l, err
}

// awsReport reads an AWS cost and usage report in the older or the newer format. It
// selects the lines of Bedrock: each has a cost, and a number of tokens if that is its
// unit.
func awsReport(raw []byte) (lines []Line, err error) {
	t, err := openTable(raw)
	if err != nil {
		return nil, err
	}
	if !t.has("lineitemusagestartdate") || !t.has("lineitemunblendedcost") {
		return nil, errors.New("it needs the columns line_item_usage_start_date and line_item_unblended_cost")
	}
	for i, row := range t.rows {
		t.row = row
		if code := t.get("lineitemproductcode"); code != "" && !strings.Contains(code, "Bedrock") {
			continue
		}
		l, err := t.aws()
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+2, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func (t *table) aws() (l Line, err error) {
	var ok bool
	if l.Start, ok = moment(t.get("lineitemusagestartdate")); !ok {
		return l, errors.New("line_item_usage_start_date must be a time")
	}
	l.End = l.Start.Add(time.Hour)
	if end := t.get("lineitemusageenddate"); end != "" {
		if l.End, ok = moment(end); !ok {
			return l, errors.New("line_item_usage_end_date must be a time")
		}
	}
	l.Model = t.get("productmodel", "model")
	if l.Cost, err = dollars(t.get("lineitemunblendedcost"), t.get("lineitemcurrencycode"), 1); err != nil {
		return l, err
	}
	usage := strings.ToLower(t.get("lineitemusagetype"))
	amount, err := t.number("lineitemusageamount")
	if err != nil || amount == nil {
		return l, err
	}
	unit, n := strings.ToLower(t.get("pricingunit")), *amount
	thousands := strings.HasPrefix(unit, "1k") || strings.HasPrefix(unit, "1,000 ")
	switch {
	case thousands:
		n = math.Round(n * 1000)
	case !strings.Contains(unit, "token"):
		return l, nil
	}
	count, err := checked("line_item_usage_amount", n)
	if err != nil {
		return l, err
	}
	tokens := &count
	switch {
	case strings.Contains(usage, "cache-read"):
		l.Input, l.Cached = tokens, tokens
	case strings.Contains(usage, "input"), strings.Contains(usage, "cache-write"):
		l.Input = tokens
	case strings.Contains(usage, "output"):
		l.Output = tokens
	}
	return l, nil
}
