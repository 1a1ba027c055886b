package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
)

func median(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	v = slices.Clone(v)
	slices.Sort(v)
	if n := len(v); n%2 == 0 {
		return (v[n/2-1] + v[n/2]) / 2
	}
	return v[len(v)/2]
}

// figures are the medians of one cell on one target.
type figures struct {
	cpu, low, high     float64
	rps, p50, p99, gap float64
	errors, requests   int
	noUsage, noFinish  int
	disturbed          bool
}

func summarise(all []sample, cell, target string) figures {
	var f figures
	var mine []sample
	for _, s := range all {
		if s.Cell == cell && s.Target == target {
			mine = append(mine, s)
			f.errors, f.requests = f.errors+s.Errors, f.requests+s.Requests
			f.noUsage, f.noFinish = f.noUsage+s.NoUsage, f.noFinish+s.NoFinish
		}
	}
	used := quiet(mine)
	f.disturbed = slices.ContainsFunc(used, func(s sample) bool { return s.OtherCPUs > busyOthers })
	of := func(get func(sample) float64) []float64 {
		var v []float64
		for _, s := range used {
			v = append(v, get(s))
		}
		return v
	}
	cpu := of(func(s sample) float64 { return s.CPUMicros })
	f.cpu = median(cpu)
	if len(cpu) > 0 {
		f.low, f.high = slices.Min(cpu), slices.Max(cpu)
	}
	f.rps = median(of(func(s sample) float64 { return s.RPS }))
	f.p50 = median(of(func(s sample) float64 { return s.Latency.P50 }))
	f.p99 = median(of(func(s sample) float64 { return s.Latency.P99 }))
	f.gap = median(of(func(s sample) float64 { return s.Gap.P99 }))
	return f
}

// report writes the tables and returns which targets of the project are missed.
func report(w io.Writer, use []cell, all []sample, cold map[string][]coldStart) (misses []string) {
	fmt.Fprintln(w, "\n| work | bare proxy, CPU µs/req | gateway, CPU µs/req | spread | ratio | target | gateway req/s | p50 µs | p99 µs | flaws |")
	fmt.Fprintln(w, "|---|--:|--:|--:|--:|--:|--:|--:|--:|---|")
	peak := map[string]float64{}
	for _, s := range all {
		peak[s.Target] = max(peak[s.Target], s.PeakMiB)
	}
	disturbed := false
	for _, c := range use {
		proxy, ours := summarise(all, c.name, proxyName), summarise(all, c.name, gatewayName)
		disturbed = disturbed || proxy.disturbed || ours.disturbed
		than := proxy
		if c.than != "" {
			than = summarise(all, c.than, gatewayName)
		}
		ratio := ours.cpu / than.cpu
		goal := fmt.Sprintf("≤ %.2f", c.limitRatio)
		missed := c.limitRatio > 0 && ratio > c.limitRatio
		if c.limitMicros > 0 {
			goal = fmt.Sprintf("≤ %.0f µs", c.limitMicros)
			missed = ours.cpu > c.limitMicros
		}
		if missed {
			misses = append(misses, fmt.Sprintf("%s: %.1f µs, %.2f of %s; target %s", c.name, ours.cpu, ratio, cmp.Or(c.than, "the bare proxy"), goal))
		}
		flaws := ours.flaws()
		if flaws != "" {
			misses = append(misses, c.name+": "+flaws)
		}
		fmt.Fprintf(w, "| %s: %s | %.1f | %.1f | %.0f–%.0f | %.2f | %s | %.0f | %.0f | %.0f | %s |\n",
			c.name, c.what, proxy.cpu, ours.cpu, ours.low, ours.high, ratio, goal, ours.rps, ours.p50, ours.p99, flaws)
	}
	if disturbed {
		fmt.Fprintln(w, "\nSome figures come from a machine that was busy with other work: read the ratios, not the microseconds.")
	}
	fmt.Fprintf(w, "\n| memory | gateway | bare proxy |\n|---|--:|--:|\n| peak resident, MiB (target < %d) | %.1f | %.1f |\n", limitPeakMiB, peak[gatewayName], peak[proxyName])
	if peak[gatewayName] >= limitPeakMiB {
		misses = append(misses, fmt.Sprintf("peak memory %.1f MiB; target < %d", peak[gatewayName], limitPeakMiB))
	}
	return append(misses, reportCold(w, cold)...)
}

func (f figures) flaws() string {
	out := ""
	for _, x := range []struct {
		n    int
		what string
	}{{f.errors, "errors"}, {f.noUsage, "without usage"}, {f.noFinish, "without finish_reason"}} {
		if x.n > 0 {
			out += fmt.Sprintf("%d of %d %s ", x.n, f.requests, x.what)
		}
	}
	return out
}

func reportCold(w io.Writer, cold map[string][]coldStart) (misses []string) {
	if len(cold) == 0 {
		return nil
	}
	fmt.Fprintf(w, "\n| from start to first good answer | ms, median (target < %d) | least–most | CPU ms | MiB then |\n|---|--:|--:|--:|--:|\n", limitColdMS)
	for _, name := range []string{coldEmpty, coldUsed} {
		var ms, cpu, mib []float64
		for _, c := range cold[name] {
			ms, cpu, mib = append(ms, c.Milliseconds), append(cpu, c.CPUMilliseconds), append(mib, c.ResidentMiB)
		}
		if len(ms) == 0 {
			continue
		}
		fmt.Fprintf(w, "| %s | %.1f | %.0f–%.0f | %.1f | %.1f |\n", name, median(ms), slices.Min(ms), slices.Max(ms), median(cpu), median(mib))
		if median(ms) >= limitColdMS {
			misses = append(misses, fmt.Sprintf("start-up with %s %.1f ms; target < %d", name, median(ms), limitColdMS))
		}
	}
	return misses
}
