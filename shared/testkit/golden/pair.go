package golden

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"gateway/shared/chat"
	"gateway/shared/dialect/ai21"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/bedrock"
	"gateway/shared/dialect/bytez"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/oci"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/palm"
	"gateway/shared/dialect/reka"
	"gateway/shared/dialect/responses"
	"gateway/shared/dialect/triton"
	"gateway/shared/dialect/workersai"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Clients are the dialects that clients speak, by the names that the folders of
// testdata use.
var Clients = map[string]chat.TwoWayDialect{
	"openai":      openai.Chat{},
	"completions": openai.Completions{},
	"anthropic":   anthropic.Messages{},
	"responses":   responses.Responses{},
}

// Providers are all dialects, by the same names.
var Providers = map[string]chat.Provider{
	"openai":      openai.Chat{},
	"completions": openai.Completions{},
	"anthropic":   anthropic.Messages{},
	"gemini":      gemini.Generate{},
	"converse":    converse.Converse{},
	"responses":   responses.Responses{},
	"cohere":      cohere.Chat{},
	"generate":    cohere.Generate{},
	"ai21":        ai21.Complete{},
	"invoke":      bedrock.Invoke{},
	"bytez":       bytez.Chat{},
	"oci":         oci.Chat{},
	"palm":        palm.Chat{},
	"palmtext":    palm.Text{},
	"reka":        reka.Chat{},
	"triton":      triton.Generate{},
	"workersai":   workersai.Run{},
}

// pair is one run of a case of two dialects.
type pair struct {
	*run
	client   chat.TwoWayDialect
	provider chat.Provider
}

// RunPairs runs every case of testdata/<client>-<provider>. Its files:
//
//	case.json              options, may be missing
//	request.json           the client's request
//	upstream_request.json  golden: the request to the provider
//	loss.txt               golden: the loss report
//	rejected.json           golden: the response to a rejected request
//	upstream_response.*    the provider's response, .json, .txt or .sse
//	response.*             golden: the response to the client
//	meter.txt              golden: the accounting data
func RunPairs(t *testing.T) {
	folders, _ := filepath.Glob("testdata/*-*")
	if len(folders) == 0 {
		t.Fatal("no cases")
	}
	for _, folder := range folders {
		client, provider, _ := strings.Cut(filepath.Base(folder), "-")
		if Clients[client] == nil || Providers[provider] == nil {
			t.Fatalf("%s names no two dialects", folder)
		}
		cases, _ := filepath.Glob(filepath.Join(folder, "*.txtar"))
		for _, path := range cases {
			t.Run(filepath.Base(folder)+"/"+strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
				g := &pair{run: open(t, path), client: Clients[client], provider: Providers[provider]}
				g.play()
				g.compare()
			})
		}
	}
}

func (g *pair) play() {
	body := g.in["request.json"]
	if body == nil {
		g.t.Fatal("no request.json")
	}
	o := &chat.Options{Strict: !g.c.Lenient, ID: "gw-1", Created: 1750000000, ProviderName: "acme"}
	var checked chat.Checked
	if err := g.client.Check(body, &checked); err != nil {
		g.rejected(err, o)
		return
	}
	if g.client.Name() == g.provider.Name() {
		g.pass(o, bytes.Contains(body, []byte(`"include_usage": true`)))
		return
	}
	r, err := g.client.DecodeRequest(body)
	if err != nil {
		g.rejected(err, o)
		return
	}
	r.MatchSchema = fits
	if len(g.c.Recall) > 0 {
		r.LoadReasoning = func(id string) []chat.Part { return g.c.Recall[id] }
	}
	o.Request, o.Model, o.IncludeUsage = r, r.Model, r.IncludeUsage.Value
	loss := chat.Loss{Strict: g.c.StrictLoss, StrictResponse: g.c.StrictReply}
	o.Origin = g.provider.Name()
	up, err := chat.Translate(nil, g.client, g.provider, r, &g.c.Traits, &loss)
	if err != nil {
		g.rejected(err, o)
		return
	}
	g.json("upstream_request.json", up)
	again, err := chat.Translate(nil, g.client, g.provider, r, &g.c.Traits, &chat.Loss{})
	if err != nil || !bytes.Equal(up, again) {
		g.t.Errorf("the same request is encoded differently the second time (%v)", err)
	}
	if !loss.Empty() {
		g.out["loss.txt"] = []byte(strings.NewReplacer("dropped=", "", "), ", ")\n").Replace(loss.Header()) + "\n")
	}
	g.respond(o)
}

// rejected records the response to a request that is rejected.
func (g *pair) rejected(err error, o *chat.Options) {
	f := fault.From(err)
	if f.Status() >= 500 {
		g.t.Errorf("a request is answered with %d: %v", f.Status(), f)
	}
	g.json("refused.json", fmt.Appendf(nil, `{"status":%d,"body":%s}`, f.Status(), g.client.AppendError(nil, f, o)))
}

// respond translates the provider's response.
func (g *pair) respond(o *chat.Options) {
	if stream := g.in["upstream_response.sse"]; stream != nil {
		g.stream(o, stream)
		return
	}
	body := g.in["upstream_response.json"]
	if body == nil {
		body = g.in["upstream_response.txt"]
	}
	switch {
	case body == nil:
		g.t.Fatal("no upstream_response")
	case g.c.Status >= 400:
		g.failure(g.provider.DecodeError(g.c.Status, g.header(), body), o)
		return
	}
	r, err := g.provider.DecodeResponse(body, &g.c.Traits)
	if err != nil {
		g.failure(fault.From(err), o)
		return
	}
	if d, ok := g.provider.(chat.HeaderReader); ok {
		d.ReadHeader(g.header(), r)
	}
	if err := o.Request.CheckJSON(r); err != nil {
		g.failure(fault.From(err), o)
		return
	}
	if err := chat.Verify(r, g.client.Support(o), &chat.Loss{}); err != nil {
		g.failure(fault.From(err), o)
		return
	}
	g.json("response.json", g.client.EncodeResponse(nil, r, o))
	g.meter(r.Meter(), r.Signed())
}

// header is that of the provider's response.
func (g *run) header() http.Header {
	h := http.Header{}
	for k, v := range g.c.Headers {
		h.Set(k, v)
	}
	return h
}

func (g *pair) failure(f *fault.Fault, o *chat.Options) {
	if f.Source != fault.SourceProvider {
		g.t.Errorf("source %q", f.Source)
	}
	g.json("response.json", fmt.Appendf(nil, `{"status":%d,"retry_after":%d,"body":%s}`, f.Status(), int(f.RetryAfter.Seconds()), g.client.AppendError(nil, f, o)))
}

// stream translates a stream in pieces of several sizes; the result must be the same.
func (g *pair) stream(o *chat.Options, in []byte) {
	var first []byte
	for i, size := range []int{len(in), 1, 7, 100} {
		out, m, signed := Stream(g.t, g.client, g.provider, &g.c.Traits, o, in, size)
		if i == 0 {
			first = out
			g.out["response.sse"] = out
			g.meter(m, signed)
			CheckStream(g.t, g.client.Name(), out, g.c.Lenient)
			continue
		}
		if diff := cmp.Diff(string(first), string(out)); diff != "" {
			g.t.Fatalf("in pieces of %d bytes:\n%s", size, diff)
		}
	}
}

// Stream takes a provider's stream to a client in pieces of size bytes.
func Stream(t *testing.T, client chat.ResponseWriter, provider chat.Provider, traits *chat.Traits, o *chat.Options, in []byte, size int) ([]byte, chat.Meter, []chat.Signed) {
	return translated(t, client, provider, traits, o, in, size, &chat.Loss{})
}

// translated is Stream with a report of what the client does not get.
func translated(t *testing.T, client chat.ResponseWriter, provider chat.Provider, traits *chat.Traits, o *chat.Options, in []byte, size int, loss *chat.Loss) ([]byte, chat.Meter, []chat.Signed) {
	missed := chat.NewLossReporter(client, o, loss)
	dec, enc := chat.CheckJSON(o.Request, provider.NewStreamDecoder(traits)), client.NewStreamEncoder(o)
	dec = chat.Verified(dec, client.Support(o), loss)
	var parser chat.EventParser = new(wire.SSEParser)
	if framed, ok := dec.(chat.Framed); ok {
		if parser = framed.Parser(); bytes.Contains(in, []byte("event:")) && (provider.Name() == (converse.Converse{}).Name() || provider.Name() == (bedrock.Invoke{}).Name()) {
			in = framedEvents(t, in)
		}
	}
	var out []byte
	event := func(name string, data []byte) error {
		return dec.Event(name, data, func(d *chat.Delta) error {
			missed.Piece(d)
			out = enc.Append(out, d)
			return nil
		})
	}
	var err error
	for len(in) > 0 && err == nil {
		n := min(size, len(in))
		err = parser.Feed(in[:n], event)
		in = in[n:]
	}
	if err == nil {
		err = parser.End(event)
	}
	if err == nil {
		err = dec.End()
	}
	if err == nil {
		return enc.Finish(out), dec.Meter(), dec.Signed()
	}
	f := dec.Meter().Err
	if f == nil {
		f = fault.New(fault.InvalidProviderResponse, "", "The stream of acme was truncated")
		f.Source = fault.SourceProvider
	}
	return enc.Error(out, f), dec.Meter(), dec.Signed()
}

// framedEvents puts the events of a file into the provider's binary framing; the files hold
// them as server-sent events, so that people can read them. The event "cut" is a message
// that breaks off, and a "chunk" is packed in base64.
func framedEvents(t *testing.T, in []byte) (out []byte) {
	for _, e := range Events(t, in) {
		if e.Name == "cut" {
			whole := wire.AppendEventStream(nil, "messageStop", []byte(e.Data))
			return append(out, whole[:len(whole)-5]...)
		}
		data := []byte(e.Data)
		if e.Name == "chunk" { // the model's own event
			data = fmt.Appendf(nil, `{"bytes":%q,"p":"abc"}`, base64.StdEncoding.EncodeToString(data))
		}
		out = wire.AppendEventStream(out, e.Name, data)
	}
	return out
}

// pass sends a response through the filter of a dialect that both sides speak.
func (g *pair) pass(o *chat.Options, includeUsage bool) {
	if body := g.in["upstream_response.json"]; body != nil {
		if g.c.Status >= 400 {
			g.failure(g.provider.DecodeError(g.c.Status, http.Header{}, body), o)
			return
		}
		g.meter(g.client.MeterResponse(body), nil)
		return
	}
	in := g.in["upstream_response.sse"]
	for i, size := range []int{len(in), 1, 13} {
		f := g.client.NewStreamFilter(&chat.FilterOptions{Strict: !g.c.Lenient, IncludeUsage: includeUsage, UsageAdded: g.c.Injected})
		var out []byte
		buffer := make([]byte, size) // used for each read, as a connection's is
		for rest := in; len(rest) > 0; {
			n := copy(buffer, rest)
			got, err := f.Feed(buffer[:n])
			if err != nil {
				g.t.Fatal(err)
			}
			out = append(out, got...)
			rest = rest[n:]
		}
		out = append(out, f.End()...)
		if i == 0 {
			g.out["response.sse"] = out
			g.meter(f.Meter(), nil)
			CheckStream(g.t, g.client.Name(), out, g.c.Lenient)
		} else if diff := cmp.Diff(string(g.out["response.sse"]), string(out)); diff != "" {
			g.t.Fatalf("in pieces of %d bytes:\n%s", size, diff)
		}
	}
}

func (g *run) meter(m chat.Meter, signed []chat.Signed) {
	var b strings.Builder
	fmt.Fprintf(&b, "id %s\nmodel %s\nfinish %s\ncomplete %v\nstarted %v\n", m.ID, m.Model, m.Finish, m.Complete, m.Started)
	if m.Err != nil {
		fmt.Fprintf(&b, "error %d %s\n", m.Err.Status(), m.Err.Code)
	}
	for c := range pricing.NumClasses {
		if n, ok := m.Usage.Get(c); ok {
			fmt.Fprintf(&b, "%s %d\n", c, n)
		}
	}
	if m.ReportedTotal != 0 {
		fmt.Fprintf(&b, "reported total %d\n", m.ReportedTotal)
	}
	for _, s := range signed {
		fmt.Fprintf(&b, "signed %s:", s.ToolCallID)
		for _, p := range s.Parts {
			fmt.Fprintf(&b, " [%q %q %q]", p.Text, p.Signature, p.Data)
		}
		b.WriteByte('\n')
	}
	g.out["meter.txt"] = []byte(b.String())
}

// json records a JSON output, indented so that a diff can be read.
func (g *run) json(name string, raw []byte) {
	g.t.Helper()
	if err := wire.CheckStrict(raw, wire.MaxDepth); err != nil {
		g.t.Errorf("%s is not strict JSON: %v\n%s", name, err, raw)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		g.t.Fatalf("%s: %v\n%s", name, err, raw)
	}
	b.WriteByte('\n')
	g.out[name] = b.Bytes()
}

// fits is chat.Request.MatchSchema for cases.
func fits(schema, value []byte) bool {
	s, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return true
	}
	c := jsonschema.NewCompiler()
	if c.AddResource("mem:schema", s) != nil {
		return true
	}
	compiled, err := c.Compile("mem:schema")
	if err != nil {
		return true
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	return err == nil && compiled.Validate(v) == nil
}
