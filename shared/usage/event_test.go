package usage

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gateway/shared/pricing"
)

var compareUsage = cmp.Comparer(func(a, b pricing.Usage) bool { return a == b })

// sample is a typical record: one attempt, a few metadata, no bodies.
func sample() Record {
	r := Record{
		ID: "01JD4ZK8V6Q0Y9T5M3N2P1R0S7", Start: time.Unix(0, 1764000000123456789).UTC(), Org: "org-1", Workspace: "ws-1", WorkspaceSlug: "default",
		KeyID: "6f1c1a52-7f0e-4f8f-9c39-3f4f0a9e2b11", KeyType: "workspace-service", EndUser: "alice", Metadata: map[string]string{"_user": "alice", "team": "search"},
		TraceID: "4bf92f3577b34da6a3ce929d0e0e4736", Endpoint: "chatComplete", Method: "POST", Path: "/v1/chat/completions", RequestModel: "gpt-4o",
		RequestBytes: 1234, ResponseBytes: 2345, ClientStatus: 200, Provider: "openai", ProviderSlug: "main", IntegrationID: "int-1", Model: "gpt-4o-2024-08-06",
		OptionIndex: "config", CacheStatus: "MISS", FinishReason: "stop", Cost: 5_250_000, Priced: true,
		TimeToFirstByte: 210 * time.Millisecond, Duration: 900 * time.Millisecond, UpstreamLatency: 200 * time.Millisecond, GatewayTime: 300 * time.Microsecond,
		SettleSubjects: []Settle{{PK: "ORG#org-1#SPEND#key", Entry: "a1b2c3d4", Amount: 5_250_000}},
	}
	r.Usage.Set(pricing.Input, 900)
	r.Usage.Set(pricing.CacheRead, 100)
	r.Usage.Set(pricing.Output, 250)
	r.Attempts = []Attempt{{Provider: "openai", ProviderSlug: "main", Model: "gpt-4o", OptionIndex: "config", Status: 200, RequestID: "req-1",
		Start: 200 * time.Microsecond, Latency: 200 * time.Millisecond, Usage: r.Usage, Cost: 5_250_000}}
	return r
}

func drawRecord(t *rapid.T) Record {
	str := func(name string) string { return rapid.StringN(0, 12, 40).Draw(t, name) }
	num := func(name string) int64 { return rapid.Int64().Draw(t, name) }
	dur := func(name string) time.Duration { return time.Duration(num(name)) }
	use := func() (u pricing.Usage) {
		for c := range pricing.NumClasses {
			if rapid.IntRange(0, 3).Draw(t, "has") == 0 {
				u.Set(c, num("count"))
			}
		}
		u.Estimated = rapid.Bool().Draw(t, "estimated")
		u.Limited = rapid.Bool().Draw(t, "limited")
		return u
	}
	r := Record{
		ID: str("id"), Org: str("org"), Workspace: str("ws"), WorkspaceSlug: str("slug"), KeyID: str("key"), KeyType: str("type"), UserID: str("user"),
		EndUser: str("end"), TraceID: str("trace"), SpanID: str("span"), ParentSpanID: str("parent"), SpanName: str("name"), Endpoint: str("endpoint"),
		Method: str("method"), Path: str("path"), RequestModel: str("model"), Stream: rapid.Bool().Draw(t, "stream"), RequestBytes: num("in"), ResponseBytes: num("out"),
		ClientStatus: int(num("status")), ClientGone: rapid.Bool().Draw(t, "gone"), ConfigID: str("config"), ConfigSlug: str("cslug"), ConfigVersion: num("version"),
		Mode: str("mode"), PromptID: str("prompt"), PromptSlug: str("pslug"), Provider: str("provider"), ProviderSlug: str("provslug"), IntegrationID: str("int"),
		Model: str("answered"), OptionIndex: str("option"), RetryCount: int(num("retry")), CacheStatus: str("cache"), FinishReason: str("finish"), ErrorCode: str("code"),
		ErrorMessage: str("message"), Unconfirmed: rapid.Bool().Draw(t, "unconfirmed"), Cost: pricing.NanoDollars(num("cost")), Priced: rapid.Bool().Draw(t, "priced"),
		CacheSaved: pricing.NanoDollars(num("saved")), Running: pricing.NanoDollars(num("running")), Usage: use(), TimeToFirstByte: dur("ttfb"), Duration: dur("duration"), UpstreamLatency: dur("upstream"),
		GatewayTime: dur("gateway"), Blob: str("blob"),
	}
	if rapid.Bool().Draw(t, "refused by a limit") {
		r.Refusal = &Refusal{Subject: str("subject"), ID: str("id"), Entity: str("entity"), Type: str("measure"), Unit: str("unit"), Needed: num("needed")}
	}
	r.Reported = rapid.Bool().Draw(t, "reported")
	if rapid.Bool().Draw(t, "by an agent") {
		r.Agent = Agent{Session: str("session"), ID: str("agent"), Parent: str("parent agent")}
	}
	if rapid.Bool().Draw(t, "started") {
		r.Start = time.Unix(0, rapid.Int64Range(0, 1<<62).Draw(t, "start")).UTC()
	}
	if b := rapid.SliceOfN(rapid.Byte(), 0, 50).Draw(t, "bodies"); len(b) > 0 {
		r.Bodies = b
	}
	if m := rapid.MapOfN(rapid.String(), rapid.String(), 0, 3).Draw(t, "metadata"); len(m) > 0 {
		r.Metadata = m
	}
	for range rapid.IntRange(0, 2).Draw(t, "lists") {
		r.Losses = append(r.Losses, str("loss"))
		r.Draws = append(r.Draws, Draw{str("at"), rapid.Uint32().Draw(t, "number"), int(num("chosen")), rapid.SampledFrom([]string{"", StickyHash, StickyReused}).Draw(t, "sticky")})
		r.Breakers = append(r.Breakers, Breaker{str("breaker"), rapid.Bool().Draw(t, "open"), rapid.Bool().Draw(t, "probe")})
		r.Attempts = append(r.Attempts, Attempt{str("p"), str("ps"), str("m"), str("o"), int(num("s")), str("rid"), str("ec"), dur("st"), dur("la"), use(), pricing.NanoDollars(num("c")), int(num("retry")), dur("wait"), str("why"), str("credential"), str("server")})
		r.Measured = append(r.Measured, Measured{Path: str("compared"), By: str("by"), Index: int(num("best")), Reason: str("reason"), Figures: []Figure{{int(num("index")), num("value"), int(num("observed")), int(num("busy")), rapid.Bool().Draw(t, "avoided")}}})
		r.Matches = append(r.Matches, Match{str("node"), int(num("condition")), int(num("target"))})
		r.Skips = append(r.Skips, Skip{str("skipped"), str("reason"), str("fault"), int(num("refused"))})
		r.SettleSubjects = append(r.SettleSubjects, Settle{str("pk"), str("entry"), num("amount")})
	}
	return r
}

func TestEventsDecodeToTheSameRecord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawRecord(t)
		prefix := []byte("before")
		b := want.AppendEvent(prefix)
		got, err := DecodeEvent(b[len(prefix):])
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, compareUsage); d != "" {
			t.Fatal(d)
		}
	})
}

func TestSeveralEventsInOneMessage(t *testing.T) {
	a, b := sample(), sample()
	b.ID, b.Bodies = "01JD4ZK8V6Q0Y9T5M3N2P1R0S8", []byte("sealed")
	records, err := DecodeEvents(b.AppendEvent(a.AppendEvent(nil)))
	if err != nil || len(records) != 2 {
		t.Fatal(len(records), err)
	}
	if d := cmp.Diff([]Record{a, b}, records, compareUsage); d != "" {
		t.Error(d)
	}
}

func TestDamagedEventsAreRefused(t *testing.T) {
	r := sample()
	r.Bodies = []byte("sealed bodies")
	whole := r.AppendEvent(nil)
	for i := range whole {
		if _, err := DecodeEvent(whole[:i]); !errors.Is(err, ErrTruncated) {
			t.Fatalf("cut at %d: %v", i, err)
		}
		flipped := bytes.Clone(whole)
		flipped[i] ^= 0x40
		if _, err := DecodeEvent(flipped); err == nil {
			t.Fatalf("a flipped bit at %d goes unnoticed", i)
		}
	}
	if _, err := DecodeEvent(append(bytes.Clone(whole), 0)); !errors.Is(err, ErrDamaged) {
		t.Errorf("trailing byte: %v", err)
	}
}

func TestEventsOfANewerGatewayAreRefusedClearly(t *testing.T) {
	r := sample()
	b := r.AppendEvent(nil)
	b[1] = eventVersion + 1
	binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], castagnoli))
	if _, err := DecodeEvent(b); !errors.Is(err, ErrNewVersion) {
		t.Errorf("%v", err)
	}
}

func TestEventOfTheFirstVersionStaysReadable(t *testing.T) {
	r := sample()
	r.Metadata = map[string]string{"team": "search"} // one entry: the order of a map is not fixed
	b := r.AppendEvent(nil)
	if got := binary.LittleEndian.Uint32(b[len(b)-eventTail:]); got != 0xa8a511bc {
		t.Errorf("the encoding of version %d changed (CRC %#x): make a new version", eventPlain, got)
	}
}

// TestEventOfTheSecondVersionStaysReadable: a record that explains a decision.
func TestEventOfTheSecondVersionStaysReadable(t *testing.T) {
	r := sample()
	r.Metadata = nil
	r.Draws = []Draw{{Path: "config", Number: 7, Index: 1, Sticky: StickyHash}}
	r.Breakers = []Breaker{{Path: "config.targets[0]", Open: true}, {Path: "config.targets[1]", Probe: true}}
	r.Matches = []Match{{Path: "config.targets[1]", Condition: -1, Index: 2}}
	r.Skips = []Skip{{Path: "config.targets[0]", Reason: SkipOpen}, {Path: "config.targets[2]", Reason: SkipRejected, Code: "model_not_allowed", Status: 403}}
	r.Attempts = append(r.Attempts, r.Attempts[0])
	r.Attempts[1].Retry, r.Attempts[1].Wait, r.Attempts[1].WaitReason = 1, time.Second, WaitBackoff
	b := r.AppendEvent(nil)
	if b[1] != 2 {
		t.Errorf("version %d", b[1])
	}
	got, err := DecodeEvent(b)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r, got, compareUsage); d != "" {
		t.Error(d)
	}
	if got := binary.LittleEndian.Uint32(b[len(b)-eventTail:]); got != 0x5898708a {
		t.Errorf("the encoding of version 2 changed (CRC %#x): make a new version", got)
	}
}

// TestEventsOfGuardrailsStayReadable: those that guardrails gave feedback of, and others.
func TestEventsOfGuardrailsStayReadable(t *testing.T) {
	for _, version := range []byte{3, 5} {
		r := sample()
		r.Metadata = nil
		r.Guards = []Guard{{Hook: "h", Phase: GuardBefore, Path: "config", Verdict: true, LatencyMS: 3, Errored: []string{"c"}}, {Hook: "g", Phase: GuardAfter, Denied: true, Failed: []string{"a", "b"}}}
		if version == 5 {
			r.Guards[1].Feedback = &GuardFeedback{-5, 0.25, `{"a":"b"}`}
		}
		b := r.AppendEvent(nil)
		got, err := DecodeEvent(b)
		if d := cmp.Diff(r, got, compareUsage); d != "" || err != nil || b[1] != version {
			t.Errorf("version %d: %v %s", b[1], err, d)
		}
	}
}

// TestSessionsAreSuccesses: a session that ended as it should counts as no error; a response that
// was cut has the status of its failure.
func TestSessionsAreSuccesses(t *testing.T) {
	for status, want := range map[int]bool{101: true, 200: true, 299: true, 0: false, 100: false, 300: false, 446: false, 499: false, 502: false} {
		if r := (Record{ClientStatus: status}); r.Success() != want {
			t.Errorf("%d: %v", status, !want)
		}
	}
}

func TestFallbackIsTheLastIndexOfTheOption(t *testing.T) {
	for option, want := range map[string]bool{"config": false, "config.targets[0]": false, "config.targets[1]": true, "config.targets[1].targets[0]": false, "config.targets[0].targets[10]": true, "": false} {
		r := Record{Mode: "fallback", ClientStatus: 200, OptionIndex: option}
		if r.Fallback() != want {
			t.Errorf("%q: %v", option, !want)
		}
		r.Mode = "loadbalance"
		if r.Fallback() {
			t.Errorf("%q under loadbalance", option)
		}
	}
}

func FuzzDecodeEvent(f *testing.F) {
	r := sample()
	f.Add(r.AppendEvent(nil))
	r = Record{Bodies: []byte("x"), Losses: []string{"a"}, Draws: []Draw{{"p", 1, 2, StickyHash}}, Breakers: []Breaker{{"b", true, false}}, Matches: []Match{{"m", -1, 1}}, Skips: []Skip{{"s", SkipRejected, "not_allowed", 403}},
		Book: "2026-08-21-00000000", Tariff: "openai/gpt-5.6 priority; openai/gpt-image-1",
		Guards: []Guard{{Hook: "h", Phase: GuardAfter, Path: "config", Verdict: true, Transformed: true, LatencyMS: 3, Failed: []string{"a", "b"}, Errored: []string{"c"}}, {Denied: true, Async: true, Feedback: &GuardFeedback{-5, 0.25, `{"a":"b"}`}}}}
	f.Add(r.AppendEvent(nil))
	f.Add([]byte{eventMagic, eventVersion, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		// With a matching checksum, so that the payload's reader is reached.
		if len(b) >= eventHead+eventTail && b[0] == eventMagic {
			b = bytes.Clone(b)
			binary.LittleEndian.PutUint32(b[2:], uint32(len(b)-eventHead-eventTail))
			binary.LittleEndian.PutUint32(b[len(b)-4:], crc32.Checksum(b[:len(b)-4], castagnoli))
		}
		r, err := DecodeEvent(b)
		if err != nil {
			return
		}
		again, err := DecodeEvent(r.AppendEvent(nil))
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(r, again, compareUsage); d != "" {
			t.Fatal(d)
		}
	})
}

func BenchmarkAppendEvent(b *testing.B) {
	r := sample()
	buf := r.AppendEvent(nil)
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		buf = r.AppendEvent(buf[:0])
	}
}

func BenchmarkDecodeEvent(b *testing.B) {
	r := sample()
	buf := r.AppendEvent(nil)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := DecodeEvent(buf); err != nil {
			b.Fatal(err)
		}
	}
}

// Bodies that are written from where they are make the same event.
func TestEventsAroundTheirBodies(t *testing.T) {
	full, plain := sample(), sample()
	full.Bodies = bytes.Repeat([]byte("b"), 300)
	plain.Metadata, full.Metadata = nil, nil // in any order
	for _, r := range []Record{{}, {ID: "1", Bodies: []byte("b")}, full, plain} {
		whole := r.AppendEvent(nil)
		around, cut := r.appendAround([]byte("before"))
		if got := string(around[6:cut]) + string(r.Bodies) + string(around[cut:]); got != string(whole) {
			t.Errorf("%q, want %q", got, whole)
		}
	}
}

// A prompt's version and experiment share one field.
func TestPromptsTravelWithTheirExperiment(t *testing.T) {
	t.Parallel()
	for _, experiment := range []string{"", "e"} {
		var r Record
		r.SetPrompt("p", 12, experiment)
		got, err := DecodeEvent(r.AppendEvent(nil))
		if id, n := got.PromptVersion(); err != nil || id != "p" || n != 12 || got.Experiment() != experiment {
			t.Errorf("%s: %q, %d, %q, %v", got.PromptID, id, n, got.Experiment(), err)
		}
	}
	if id, n := new(Record).PromptVersion(); id != "" || n != 0 || new(Record).Experiment() != "" {
		t.Error("no prompt has a version")
	}
}
