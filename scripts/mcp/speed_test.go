package mcp

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// preparedServer answers by bytes that are ready, so that it is not what is measured.
func preparedServer(b *testing.B) (address string, requests *atomic.Int64) {
	requests = new(atomic.Int64)
	text := strings.Repeat("The weather is fine today. ", 36)
	tools := make([]string, 20)
	for i := range tools {
		tools[i] = fmt.Sprintf(`{"name":"tool%d","description":"Says how the weather is in a city.","inputSchema":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"}},"required":["city"]}}`, i)
	}
	results := map[string]string{
		"server/discover": `{"resultType":"complete","supportedVersions":["` + withoutSessions + `"],"capabilities":{"tools":{}},"ttlMs":60000,"cacheScope":"public"}`,
		"tools/list":      `{"resultType":"complete","tools":[` + strings.Join(tools, ",") + `],"ttlMs":60000,"cacheScope":"public"}`,
		"tools/call":      `{"resultType":"complete","content":[{"type":"text","text":"` + text + `"}]}`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		body, _ := io.ReadAll(r.Body)
		_, rest, _ := strings.Cut(string(body), `"id":`)
		id := rest[:strings.IndexAny(rest, ",}")]
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":`+id+`,"result":`+results[r.Header.Get("Mcp-Method")]+`}`)
	}))
	b.Cleanup(s.Close)
	return s.URL, requests
}

// spent is the CPU time of a process, of the system and its own.
func spent(b *testing.B, pid int) time.Duration {
	b.Helper()
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		b.Skip("SKIPPED: CPU time of other processes can be measured on Linux only")
	}
	fields := strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+2:]))
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond // USER_HZ is 100
}

// BenchmarkGateway gives the CPU time of the gateway's process for each request, with
// keys, limits, logs with bodies and the embedded store: of a call of a tool, and of a
// list that it has.
func BenchmarkGateway(b *testing.B) {
	address, requests := preparedServer(b)
	g := startGateway(b)
	g.register("fast", address, "none", "{}")
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + withoutSessions + `","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"}}`
	for _, c := range []struct{ what, method, name, params string }{
		{"call", "tools/call", "tool7", `"name":"tool7","arguments":{"city":"Lisbon","days":3},`},
		{"list", "tools/list", "", ""},
	} {
		body := `{"jsonrpc":"2.0","id":7,"method":"` + c.method + `","params":{` + c.params + meta + `}}`
		b.Run(c.what, func(b *testing.B) {
			client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
			send := func() error {
				req, err := http.NewRequest(http.MethodPost, g.base+"/mcp/fast/mcp", strings.NewReader(body))
				if err != nil {
					return err
				}
				req.Header = http.Header{
					"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "X-Gateway-Api-Key": {workspaceKey},
					"Mcp-Protocol-Version": {withoutSessions}, "Mcp-Method": {c.method},
				}
				if c.name != "" {
					req.Header["Mcp-Name"] = []string{c.name}
				}
				res, err := client.Do(req)
				if err != nil {
					return err
				}
				defer res.Body.Close()
				raw, err := io.ReadAll(res.Body)
				if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(string(raw), `"resultType":"complete"`) {
					return fmt.Errorf("%d %s %w", res.StatusCode, raw, err)
				}
				return nil
			}
			if err := send(); err != nil {
				b.Fatal(err)
			}
			before, had := spent(b, g.cmd.Process.Pid), requests.Load()
			var next atomic.Int64
			var wg sync.WaitGroup
			for range 4 * runtime.GOMAXPROCS(0) {
				wg.Go(func() {
					for next.Add(1) <= int64(b.N) {
						if err := send(); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64((spent(b, g.cmd.Process.Pid)-before).Nanoseconds())/1e3/float64(b.N), "cpu-us/op")
			b.ReportMetric(float64(requests.Load()-had)/float64(b.N), "asked/op")
		})
	}
}
