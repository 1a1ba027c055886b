package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"gateway/local/mockprovider"
)

// oracle saves @oracle in front of the mock provider.
func (r *running) oracle() {
	r.t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		r.t.Fatal(err)
	}
	block, _ := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})))
	r.wired("oracle", "/oci", `"oracle_tenancy":"ocid1.tenancy.oc1..t","oracle_user":"ocid1.user.oc1..u","oracle_fingerprint":"20:3b:97:13:55:1c:5b:0d:d3:37:d8:50:4e:c5:3a:34","oracle_region":"us-chicago-1","oracle_compartment_id":"ocid1.compartment.oc1..c","oracle_private_key":`+string(block))
	r.mock.Reset()
}

// TestOracleCallsToolsAndFollowsSchemas has a tool called, plain and streamed, gives
// its result back, and asks for JSON of a schema, in both of the service's formats.
func TestOracleCallsToolsAndFollowsSchemas(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.oracle()
	n := 0
	send := func(body string) reply {
		t.Helper()
		n++
		got := r.call("POST", "/chat/completions", body)
		if got.status != 200 {
			t.Fatalf("%d %s\n%s", got.status, got.body, r.mock.Requests(1)[0].Body)
		}
		return got
	}
	for _, model := range []string{"meta.llama-3.3-70b-instruct", "cohere.command-r-plus-08-2024"} {
		t.Run(model, func(t *testing.T) {
			const question = `{"role":"user","content":"Weather in Paris?"}`
			head := fmt.Sprintf(`{"model":"@oracle/%s"%s,"messages":[%s`, model, weatherTool, question)
			plain := send(head + `]}`)
			v := plain.json(t)
			call := at(v, "choices", 0, "message", "tool_calls", 0)
			if textAt(call, "function", "name") != "get.weather" || textAt(v, "choices", 0, "finish_reason") != "tool_calls" {
				t.Fatalf("%s", plain.body)
			}
			s, err := mockprovider.ReadOpenAIStream([]byte(send(head + `],"stream":true}`).body))
			if err != nil || len(s.Calls) != 1 || s.Calls[0].Name != "get.weather" || s.Calls[0].Arguments != textAt(call, "function", "arguments") || s.Finish != "tool_calls" {
				t.Fatalf("%v %+v, plain %s", err, s, plain.body)
			}
			made, _ := json.Marshal(call)
			second := send(head + `,{"role":"assistant","content":null,"tool_calls":[` + string(made) + `]},{"role":"tool","tool_call_id":"` + textAt(call, "id") + `","content":"12 degrees"}]}`)
			if !strings.Contains(second.body, "12 degrees") || !strings.Contains(second.body, `"finish_reason":"stop"`) {
				t.Errorf("%s", second.body)
			}
			formed := send(fmt.Sprintf(`{"model":"@oracle/%s","messages":[{"role":"user","content":"Give n"}],"response_format":{"type":"json_schema","json_schema":{"name":"a","strict":true,"schema":%s}}}`, model, mxSchema)).json(t)
			var answer struct{ N *int }
			if err := json.Unmarshal([]byte(textAt(formed, "choices", 0, "message", "content")), &answer); err != nil || answer.N == nil {
				t.Errorf("%v: %v", err, formed)
			}
		})
	}
	r.billed(t, n)
}

// TestOracleRefusesInItsOwnShape: an error of the service keeps its status and
// words, and what it would reject is rejected by the stand-in too.
func TestOracleRefusesInItsOwnShape(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.oracle()
	got := r.call("POST", "/chat/completions", chatBody("@oracle/meta.llama-3.3-70b-instruct", "mock: status=429 retry-after=2 message=Too many requests\nHello", ""))
	if got.status != 429 || !strings.Contains(got.body, "Too many requests") || got.header.Get("Retry-After") != "2" {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	cut := r.call("POST", "/chat/completions", chatBody("@oracle/meta.llama-3.3-70b-instruct", "mock: cut=after:2\nHello", `,"stream":true`))
	if strings.Contains(cut.body, "[DONE]") {
		t.Errorf("a cut stream looks whole: %s", cut.body)
	}
	n := len(r.mock.Requests(100))
	for body, param := range map[string]string{
		chatBody("@oracle/cohere.command-r-plus-08-2024", "Hi", weatherTool+`,"tool_choice":"required"`):                           "tool_choice",
		chatBody("@oracle/cohere.command-r-plus-08-2024", "Hi", `,"temperature":1.5`):                                              "temperature",
		`{"model":"@oracle/cohere.command-r","messages":[{"role":"assistant","content":"Hi"}]}`:                                    "messages",
		`{"model":"@oracle/meta.llama-3.3-70b-instruct","messages":[{"role":"user","content":"x"},{"role":"tool","content":"y"}]}`: "messages[1].tool_call_id",
	} {
		if got := r.call("POST", "/chat/completions", body); got.status != 400 || member(got.json(t), "error/param") != param {
			t.Errorf("%s: %d %s, want 400 naming %s", body, got.status, got.body, param)
		}
	}
	if len(r.mock.Requests(100)) != n {
		t.Error("a refused request reached the provider")
	}
}
