package main

import (
	"bytes"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"gateway/scripts/bench/loadgen"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		in   []float64
		want float64
	}{{[]float64{3, 1, 2}, 2}, {[]float64{4, 1, 2, 3}, 2.5}, {[]float64{7}, 7}} {
		if got := median(c.in); got != c.want {
			t.Errorf("%v: %v", c.in, got)
		}
	}
	if !math.IsNaN(median(nil)) {
		t.Error("the median of nothing is a number")
	}
}

func samples(target string, cpu ...float64) (all []sample) {
	for _, v := range cpu {
		all = append(all, sample{Cell: "chat1k", Target: target, CPUMicros: v, PeakMiB: 12, Result: loadgen.Result{Requests: 10}})
	}
	return all
}

func TestReportNamesWhatMissesItsTarget(t *testing.T) {
	use := cells[:1]
	var b strings.Builder
	all := append(samples(proxyName, 100, 110, 90), samples(gatewayName, 99, 95, 98)...)
	if misses := report(&b, use, all, nil); len(misses) != 0 || !strings.Contains(b.String(), "| 100.0 | 98.0 | 95–99 | 0.98 |") {
		t.Errorf("%v\n%s", misses, b.String())
	}
	all = append(samples(proxyName, 100), samples(gatewayName, 150)...)
	all[1].PeakMiB, all[1].Errors = 80, 2
	cold := map[string][]coldStart{coldEmpty: {{Milliseconds: 70}}}
	if misses := report(&b, use, all, cold); len(misses) != 4 {
		t.Errorf("%d misses: %v", len(misses), misses)
	}
}

func TestDisturbedSamplesAreLeftOutWhereQuietOnesExist(t *testing.T) {
	all := samples(gatewayName, 100, 500, 102)
	all[1].OtherCPUs = 1.2
	if f := summarise(all, "chat1k", gatewayName); f.cpu != 101 || f.disturbed {
		t.Errorf("%+v", f)
	}
	for i := range all {
		all[i].OtherCPUs = 1
	}
	if f := summarise(all, "chat1k", gatewayName); f.cpu != 102 || !f.disturbed {
		t.Errorf("%+v", f)
	}
}

func TestCPUTimeOfThisProcessGrows(t *testing.T) {
	if !measurable {
		t.Skip("SKIPPED: another process's CPU time is read from Linux's clocks only")
	}
	before := cpuOf(os.Getpid())
	x := 1.0
	for cpuOf(os.Getpid())-before < 5*time.Millisecond {
		for range 10_000 {
			x = math.Sqrt(x + 1)
		}
	}
	if peakMiB(os.Getpid()) <= 0 || residentMiB(os.Getpid()) <= 0 || machineBusy() <= 0 {
		t.Errorf("memory or the machine's time cannot be read")
	}
}

// Figures of peers are multiples of the bare proxy's in the same round. A cell with errors, or that
// a peer did not do, has none.
func TestPeersAreComparedRoundByRound(t *testing.T) {
	var all []sample
	for round, cpu := range []float64{10, 20, 40} {
		all = append(all, sample{Round: round, Cell: "chat1k", Target: proxyName, CPUMicros: cpu}, sample{Round: round, Cell: "chat1k", Target: "peer", CPUMicros: cpu * float64(round+2)})
	}
	broken := sample{Cell: "chat1k", Target: "broken", CPUMicros: 1}
	broken.Errors = 1
	var page bytes.Buffer
	reportPeers(&page, settings{rounds: 3}, cells[:1], []target{{name: proxyName}, {name: "peer"}, {name: "broken"}}, []row{{"Other", "v1", "", "not run: a | b"}}, append(all, broken))
	for _, want := range []string{"| 1 | 3.00 (2.00–4.00) | failed |", "| Other | v1 |  | not run: a / b |"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("%s is missing in %s", want, page.String())
		}
	}
}
