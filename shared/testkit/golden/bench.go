package golden

import (
	"fmt"
	"strings"
	"testing"
)

// ReportCPU adds the processor time of an operation, which says more than the
// clock when others use the machine. Call it deferred.
func ReportCPU(b *testing.B) func() {
	start := cpu()
	return func() { b.ReportMetric(float64(cpu()-start)/float64(b.N), "cpu-ns/op") }
}

// ChatOf is a chat request of about size bytes.
func ChatOf(size int) []byte {
	word := "The quick brown fox jumps over the \\\"lazy\\\" dog.\\n"
	text := strings.Repeat(word, size/3/len(word)+1)
	return fmt.Appendf(nil, `{"model":"claude-sonnet-4-5","messages":[{"role":"system","content":"%s"},{"role":"user","content":"%s"},{"role":"assistant","content":"ok"},{"role":"user","content":"%s"}],"max_tokens":256,"temperature":0.7,"stream":false,"user":"u-1"}`, text, text, text)
}
