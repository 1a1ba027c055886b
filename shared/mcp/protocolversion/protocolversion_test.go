package protocolversion

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gateway/shared/mcp"
)

// usual are the headers of a call of the tool t without session.
func usual() http.Header {
	h := http.Header{}
	for name, v := range map[string]string{
		"Accept": "application/json, text/event-stream", "Content-Type": "application/json; charset=utf-8",
		mcp.HeaderVersion: Version, mcp.HeaderMethod: "tools/call", mcp.HeaderName: "t",
	} {
		h.Set(name, v)
	}
	return h
}

const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func body(method, params string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":{%s}}`, method, params)
}

// TestRefusals: what is wrong with a message, the status and the error that say so, and
// the id that the response has.
func TestRefusals(t *testing.T) {
	call := body("tools/call", meta+`,"name":"t"`)
	for _, c := range []struct {
		name, body   string
		change       func(http.Header)
		status, code int
		id           string
	}{
		{"nothing accepted", call, func(h http.Header) { h.Set("Accept", "text/html") }, 406, mcp.CodeInvalidRequest, ""},
		{"no stream accepted", call, func(h http.Header) { h.Set("Accept", "application/json") }, 406, mcp.CodeInvalidRequest, "7"},
		{"another type", call, func(h http.Header) { h.Set("Content-Type", "text/plain") }, 415, mcp.CodeInvalidRequest, ""},
		{"no type", call, func(h http.Header) { h.Del("Content-Type") }, 415, mcp.CodeInvalidRequest, ""},
		{"no JSON", `{"jsonrpc":`, nil, 400, mcp.CodeParse, ""},
		{"not UTF-8", "{\"jsonrpc\":\"\xff\"}", nil, 400, mcp.CodeParse, ""},
		{"a member twice", `{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}`, nil, 400, mcp.CodeParse, ""},
		{"too deep", strings.Repeat("[", 200) + strings.Repeat("]", 200), nil, 400, mcp.CodeParse, ""},
		{"a list", "[" + call + "]", nil, 400, mcp.CodeInvalidRequest, ""},
		{"null", "null", nil, 400, mcp.CodeInvalidRequest, ""},
		{"a null id", `{"jsonrpc":"2.0","id":null,"method":"m"}`, nil, 400, mcp.CodeInvalidRequest, ""},
		{"a broken id", `{"jsonrpc":"2.0","id":1.5,"method":"m"}`, nil, 400, mcp.CodeInvalidRequest, ""},
		{"another JSON-RPC", `{"jsonrpc":"1.0","id":7,"method":"m"}`, nil, 400, mcp.CodeInvalidRequest, "7"},
		{"a method that is not a string", `{"jsonrpc":"2.0","id":7,"method":7}`, nil, 400, mcp.CodeInvalidRequest, "7"},
		{"a long method", `{"jsonrpc":"2.0","id":7,"method":"` + strings.Repeat("m", 300) + `"}`, nil, 400, mcp.CodeInvalidRequest, "7"},
		{"nothing at all", `{"jsonrpc":"2.0","id":7}`, nil, 400, mcp.CodeInvalidRequest, "7"},
		{"both at once", `{"jsonrpc":"2.0","id":7,"method":"m","result":{}}`, nil, 400, mcp.CodeInvalidRequest, "7"},
		{"params null", `{"jsonrpc":"2.0","id":7,"method":"m","params":null}`, nil, 400, mcp.CodeInvalidRequest, "7"},
		{"params a list", `{"jsonrpc":"2.0","id":7,"method":"m","params":[]}`, nil, 400, mcp.CodeInvalidRequest, "7"},
		{"another spelling", body("tools/call", meta+`,"Name":"other","name":"t"`), nil, 400, mcp.CodeInvalidParams, "7"},
		{"a long name", body("tools/call", meta+`,"name":"`+strings.Repeat("t", maxName)+`"`), nil, 400, mcp.CodeInvalidParams, "7"},
		{"a long address", body("resources/read", meta+`,"uri":"file:///`+strings.Repeat("t", maxName)+`"`), nil, 400, mcp.CodeInvalidParams, "7"},
		{"a long cursor", body("tools/list", meta+`,"cursor":"`+strings.Repeat("t", maxName)+`"`), nil, 400, mcp.CodeInvalidParams, "7"},
		{"a long reference", body("completion/complete", meta+`,"ref":{"type":"ref/prompt","name":"`+strings.Repeat("t", maxName)+`"}`), nil, 400, mcp.CodeInvalidParams, "7"},
		{"_meta no object", body("tools/call", `"_meta":1`), nil, 400, mcp.CodeInvalidParams, "7"},
		{"_meta without version", body("tools/call", `"_meta":{"io.modelcontextprotocol/clientCapabilities":{}},"name":"t"`), nil, 400, mcp.CodeInvalidParams, "7"},
		{"_meta without abilities", body("tools/call", `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name":"t"`), nil, 400, mcp.CodeInvalidParams, "7"},
		{"no version header", call, func(h http.Header) { h.Del(mcp.HeaderVersion) }, 400, CodeHeader, "7"},
		{"two version headers", call, func(h http.Header) { h.Add(mcp.HeaderVersion, Version) }, 400, CodeHeader, "7"},
		{"another version header", call, func(h http.Header) { h.Set(mcp.HeaderVersion, "2025-11-25") }, 400, CodeHeader, "7"},
		{"a later version", strings.Replace(call, Version, "2027-01-01", 1), func(h http.Header) { h.Set(mcp.HeaderVersion, "2027-01-01") }, 400, CodeVersion, "7"},
		{"an unknown version in a session", body("tools/call", `"name":"t"`), func(h http.Header) { h.Set(mcp.HeaderVersion, "2024-01-01") }, 400, mcp.CodeInvalidRequest, "7"},
		{"no method header", call, func(h http.Header) { h.Del(mcp.HeaderMethod) }, 400, CodeHeader, "7"},
		{"another method header", call, func(h http.Header) { h.Set(mcp.HeaderMethod, "Tools/call") }, 400, CodeHeader, "7"},
		{"no name header", call, func(h http.Header) { h.Del(mcp.HeaderName) }, 400, CodeHeader, "7"},
		{"another name header", call, func(h http.Header) { h.Set(mcp.HeaderName, "T") }, 400, CodeHeader, "7"},
		{"a name header that is broken", call, func(h http.Header) { h.Set(mcp.HeaderName, "=?base64?!?=") }, 400, CodeHeader, "7"},
		{"an answer", `{"jsonrpc":"2.0","id":7,"result":{}}`, nil, 400, mcp.CodeInvalidRequest, "7"},
	} {
		h := usual()
		if c.change != nil {
			c.change(h)
		}
		r, refused := Read(h, []byte(c.body))
		if refused == nil {
			t.Errorf("%s: taken as %+v", c.name, r)
			continue
		}
		if refused.Status != c.status || refused.Code != c.code || string(r.ID) != c.id || refused.Message == "" {
			t.Errorf("%s: %d %d, id %q", c.name, refused.Status, refused.Code, r.ID)
		}
		if c.code == CodeVersion && !strings.Contains(string(refused.Data), `"supported":["2026-07-28"]`) {
			t.Errorf("%s: %s", c.name, refused.Data)
		}
	}
}

// TestReadDetectsTheEra: what decides in which era a request is read.
func TestReadDetectsTheEra(t *testing.T) {
	plain := func(version string) http.Header {
		h := http.Header{"Content-Type": {"application/json"}}
		if version != "" {
			h.Set(mcp.HeaderVersion, version)
		}
		return h
	}
	for _, c := range []struct {
		name    string
		header  http.Header
		body    string
		era     VersionKind
		version string
	}{
		{"by _meta and headers", usual(), body("tools/call", meta+`,"name":"t"`), Stateless, Version},
		{"by the header", plain("2025-06-18"), body("tools/list", ""), Sessions, "2025-06-18"},
		{"by nothing", plain(""), body("tools/list", ""), Sessions, First},
		{"initialize", plain(""), body("initialize", `"protocolVersion":"2025-11-25"`), Sessions, First},
		{"a notification without session", usual(), `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, Stateless, Version},
	} {
		r, refused := Read(c.header, []byte(c.body))
		if refused != nil || r.Kind != c.era || r.Version != c.version {
			t.Errorf("%s: %+v %+v", c.name, r, refused)
		}
	}
}

// TestHeaderValues: any text comes back from a header, and is written as it is where a
// header can hold it.
func TestHeaderValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.OneOf(rapid.String(), rapid.StringMatching(`[ -~]{0,20}`), rapid.StringMatching(`=\?base64\?[A-Za-z]{0,8}\?=`)).Draw(t, "text")
		v := EncodeHeader(want)
		if got, ok := DecodeHeader(v); !ok || got != want || !visible(v) {
			t.Errorf("%q is written %q and read %q %t", want, v, got, ok)
		}
	})
}

func TestHeaderParamsOfSchemas(t *testing.T) {
	for schema, want := range map[string][]string{
		`{"properties":{"a":{"type":"string"}}}`:                                                                                            {},
		`{"properties":{"a":{"type":"string","x-mcp-header":"Region"}}}`:                                                                    {"Mcp-Param-Region a"},
		`{"properties":{"a":{"properties":{"b":{"type":"integer","x-mcp-header":"n"}}}}}`:                                                   {"Mcp-Param-N a.b"},
		`{"properties":{"a":{"type":"number","x-mcp-header":"n"}}}`:                                                                         nil,
		`{"properties":{"a":{"type":"string","x-mcp-header":"a b"}}}`:                                                                       nil,
		`{"properties":{"a":{"type":"string","x-mcp-header":""}}}`:                                                                          nil,
		`{"properties":{"a":{"type":"string","x-mcp-header":"n"},"b":{"type":"string","x-mcp-header":"N"}}}`:                                nil,
		`{"properties":{"a":{"x-mcp-header":"n"}}}`:                                                                                         nil,
		`{"properties":` + strings.Repeat(`{"a":{"properties":`, 200) + `{}` + strings.Repeat(`}}`, 200) + `,"description":"x-mcp-header"}`: nil,
	} {
		marks, ok := HeaderParams(json.RawMessage(schema))
		got := make([]string, 0, len(marks))
		for _, m := range marks {
			got = append(got, m.Header+" "+strings.Join(m.Path, "."))
		}
		if ok != (want != nil) || ok && !slices.Equal(got, want) {
			t.Errorf("%.80s: %q %t", schema, got, ok)
		}
	}
}

// TestParamsOfCalls: headers that repeat arguments must be those, one each.
func TestParamsOfCalls(t *testing.T) {
	marks := []HeaderParam{{[]string{"r", "n"}, "Mcp-Param-N"}}
	for _, c := range []struct {
		arguments string
		header    []string
		ok        bool
	}{
		{`{"r":{"n":"x"}}`, []string{"x"}, true},
		{`{"r":{"n":"x"}}`, []string{"y"}, false},
		{`{"r":{"n":"x"}}`, nil, false},
		{`{"r":{"n":"x"}}`, []string{"x", "x"}, false},
		{`{"r":{"n":"é"}}`, []string{"=?base64?w6k=?="}, true},
		{`{"r":{"n":42}}`, []string{"42"}, true},
		{`{"r":{"n":42}}`, []string{"42.0"}, true},
		{`{"r":{"n":4.2e1}}`, []string{"42"}, true},
		{`{"r":{"n":true}}`, []string{"true"}, true},
		{`{"r":{"n":null}}`, nil, true},
		{`{"r":{}}`, nil, true},
		{`{"r":3}`, nil, true},
		{`{}`, []string{"anything"}, true},
	} {
		h := http.Header{}
		if c.header != nil {
			h["Mcp-Param-N"] = c.header
		}
		if refused := CheckParams(h, marks, json.RawMessage(c.arguments)); (refused == nil) != c.ok {
			t.Errorf("%s with %q: %+v", c.arguments, c.header, refused)
		}
		sent := http.Header{}
		SetParams(sent, marks, json.RawMessage(c.arguments))
		if refused := CheckParams(sent, marks, json.RawMessage(c.arguments)); refused != nil {
			t.Errorf("%s: our own %v: %+v", c.arguments, sent, refused)
		}
	}
}

// FuzzRequest: whatever comes, a message is rejected or is one that both sides read
// alike, and what is written of it compares with its own headers.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		body("tools/call", meta+`,"name":"t","arguments":{"a":1}`), body("tools/list", ""), body("resources/read", meta+`,"uri":"file:///é"`),
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"m"}}`, `[]`, `{"jsonrpc":"2.0","id":1,"Method":"m"}`,
	} {
		f.Add([]byte(s), Version, "tools/call", "t")
		f.Add([]byte(s), "2025-11-25", "", "")
	}
	f.Fuzz(func(t *testing.T, raw []byte, version, method, name string) {
		h := http.Header{"Accept": {"*/*"}, "Content-Type": {"application/json"}, mcp.HeaderVersion: {version}, mcp.HeaderMethod: {method}, mcp.HeaderName: {name}}
		r, refused := Read(h, raw)
		if refused != nil {
			if refused.Status < 400 || refused.Status > 499 || refused.Code == 0 || refused.Message == "" {
				t.Errorf("%+v", refused)
			}
			return
		}
		if r.Kind == Stateless && r.IsRequest() {
			again := http.Header{"Accept": {"*/*"}, "Content-Type": {"application/json"}, mcp.HeaderVersion: {Version}}
			r.SetHeaders(again)
			if _, refused := Read(again, raw); refused != nil {
				t.Errorf("%s: its own headers %v: %+v", raw, again, refused)
			}
		}
		if n := len(r.ID); n > 0 && !json.Valid(r.ID) {
			t.Errorf("id %q", r.ID)
		}
	})
}
