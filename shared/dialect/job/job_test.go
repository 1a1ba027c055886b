package job

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAnIdIsOneSegmentAndRoundTrips(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := string(rapid.SliceOfN(rapid.Byte(), 1, 80).Draw(t, "name"))
		id := EscapeSegment(name)
		for i := range len(id) {
			if !plainByte(id[i]) && id[i] != '~' {
				t.Fatalf("%q has %q", id, id[i])
			}
		}
		if back, err := Named(id); err != nil || back != name {
			t.Fatalf("%q became %q: %v", name, back, err)
		}
	})
	for _, id := range []string{"", "a:b", "~", "~4", "~3a", "~61", "arn%3Aaws", "~GG"} {
		if name, err := Named(id); err == nil {
			t.Errorf("%q is taken for %q", id, name)
		}
	}
}

func TestCustomIdsRoundTripThroughAnthropic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := string(rapid.SliceOfN(rapid.Byte(), 1, 30).Draw(t, "id"))
		name := rowName(id)
		if name == "" {
			if len(id) <= (maxRowName-len(escapedName))/3 {
				t.Fatalf("%q is too long", id)
			}
			return
		}
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" || len(name) > maxRowName {
			t.Fatalf("%q is no name", name)
		}
		if back := customID(name); back != id {
			t.Fatalf("%q became %q and %q", id, name, back)
		}
	})
	for id, want := range map[string]string{"a-b_c": "a-b_c", "row 1.": "gw_row_201_2E", "gw_x": "gw_gw_5Fx", strings.Repeat("x", 65): ""} {
		if got := rowName(id); got != want {
			t.Errorf("%q is %q, want %q", id, got, want)
		}
	}
}

func TestStatesOfMessageBatches(t *testing.T) {
	for _, c := range []struct{ in, status, output, errors string }{
		{`{"processing_status":"in_progress","request_counts":{"processing":3}}`, inProgress, "", ""},
		{`{"processing_status":"canceling","request_counts":{"processing":3}}`, cancelling, "", ""},
		{`{"processing_status":"ended","request_counts":{"succeeded":3}}`, completed, "b_output", ""},
		{`{"processing_status":"ended","request_counts":{"errored":3}}`, completed, "", "b_errors"},
		{`{"processing_status":"ended","request_counts":{"succeeded":1,"canceled":2}}`, cancelled, "b_output", "b_errors"},
		{`{"processing_status":"ended","request_counts":{"succeeded":1,"expired":2}}`, expired, "b_output", "b_errors"},
		{`{"processing_status":"ended","archived_at":"2026-01-01T00:00:00Z","request_counts":{"succeeded":1}}`, completed, "", ""},
	} {
		m := messageBatch{ID: "b"}
		if err := json.Unmarshal([]byte(c.in), &m); err != nil {
			t.Fatal(err)
		}
		b := m.batch()
		if b.Status != c.status || b.Output != c.output || b.Errors != c.errors || b.Total != m.Counts.Processing+b.Completed+b.Failed {
			t.Errorf("%s: %+v", c.in, b)
		}
	}
}

func TestStatesOfInvocationJobs(t *testing.T) {
	for state, want := range map[string]string{
		"Submitted": validating, "Validating": validating, "Scheduled": validating, "InProgress": inProgress, "Completed": completed,
		"PartiallyCompleted": completed, "Failed": failed, "Stopping": cancelling, "Stopped": cancelled, "Expired": expired, "SomethingNew": inProgress,
	} {
		v := invocationJob{ARN: "arn:aws:bedrock:eu-west-1:1:model-invocation-job/abc", Status: state, Created: "2026-02-03T04:05:06.789Z", Ended: "2026-02-03T05:00:00Z"}
		b := v.batch()
		if b.Status != want || b.Created != 1770091506 || (b.Problem != "") != (want == failed) || b.ID != "arn~3Aaws~3Abedrock~3Aeu-west-1~3A1~3Amodel-invocation-job~2Fabc" {
			t.Errorf("%s: %+v", state, b)
		}
	}
}

// A batch is written with every field with OpenAI's format, whatever is in it.
func TestABatchHasAllMembers(t *testing.T) {
	b := Batch{ID: "x", Status: failed, Problem: `a "reason"`, Created: 1, Ended: 9, note: note{Endpoint: "/v1/chat/completions", Input: "f", Window: "24h"}}
	var got map[string]any
	if err := json.Unmarshal(b.Append(nil), &got); err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(`id object endpoint errors input_file_id completion_window status output_file_id error_file_id created_at in_progress_at
		expires_at finalizing_at completed_at failed_at expired_at cancelling_at cancelled_at request_counts metadata`) {
		if _, ok := got[name]; !ok {
			t.Errorf("%s is missing", name)
		}
	}
	if got["failed_at"] != 9.0 || got["completed_at"] != nil || got["errors"].(map[string]any)["data"].([]any)[0].(map[string]any)["message"] != b.Problem {
		t.Errorf("%v", got)
	}
}

func TestLinesOfAnyLength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOf(rapid.StringMatching(`[a-z]{1,9}`)).Draw(t, "lines")
		if rapid.Bool().Draw(t, "long") {
			want = append(want, strings.Repeat("x", 200_000))
		}
		end := rapid.SampledFrom([]string{"\n", "\r\n", "\n\n  \n"}).Draw(t, "end")
		text := "\xef\xbb\xbf" + strings.Join(want, end)
		var got []string
		for l := newLines(strings.NewReader(text)); ; {
			line, err := l.next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(line))
		}
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Fatalf("%d lines, want %d", len(got), len(want))
		}
	})
	if _, err := newLines(strings.NewReader(strings.Repeat("x", maxRow+1<<17))).next(); !errors.Is(err, errRow) {
		t.Errorf("a line without an end: %v", err)
	}
}

func FuzzResults(f *testing.F) {
	f.Add([]byte(`{"custom_id":"a","result":{"type":"succeeded","message":{"model":"m"}}}`))
	f.Add([]byte(`{"custom_id":"a","result":{"type":"errored","error":{"type":"error","error":{"type":"t","message":"m"}}}}`))
	f.Add([]byte(`{"recordId":"a","modelOutput":{}}`))
	f.Add([]byte(`{"recordId":"a","error":{"errorCode":400,"errorMessage":"m"}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		for _, read := range []func([]byte) (*result, error){readResult, readRecord} {
			r, err := read(bytes.Clone(line))
			if err == nil && !json.Valid(line) {
				t.Fatalf("%q is read as %+v", line, r)
			}
			if err == nil && !r.good() && r.kind != "" && unansweredTexts[r.kind] != [2]string{} && r.code == "" {
				t.Fatalf("%q failed without a code", line)
			}
		}
	})
}

func FuzzExample(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"system","content":"a"},{"role":"user","content":"b"},{"role":"assistant","content":"c"}]}`))
	f.Add([]byte(`{"prompt":"a","completion":"b"}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if out, err := appendExample(nil, line); err == nil && (!json.Valid(out) || out[len(out)-1] != '\n') {
			t.Fatalf("%q became %q", line, out)
		}
	})
}
