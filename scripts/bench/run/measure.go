package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"slices"
	"time"

	"gateway/scripts/bench/loadgen"
)

// sample is one run of one cell on one target.
type sample struct {
	Round  int
	Cell   string
	Target string
	loadgen.Result
	CPUMicros float64 // of the target's process, for each good answer
	PeakMiB   float64 // of the process, since its start
	OtherCPUs float64 // cores used by processes outside this run
}

// settings limit a run.
type settings struct {
	rounds   int
	d, warm  time.Duration
	patience time.Duration // how long to wait for a quiet machine
}

// measure sends every cell to every target in turn, round after round.
func measure(ctx context.Context, s settings, use []cell, targets []target, upstream *process) (all []sample, err error) {
	for round := range s.rounds {
		for _, c := range use {
			if err := control(upstream.base, c, false); err != nil {
				return all, err
			}
			targets := slices.DeleteFunc(slices.Clone(targets), func(t target) bool { return t.over != c.over })
			for i := range targets {
				if ctx.Err() != nil {
					return all, ctx.Err()
				}
				t := targets[(i+round)%len(targets)]
				x, err := measureOne(ctx, s, c, t, upstream)
				if err != nil && t.peer {
					log.Printf("%-17s %-13s fails: %v", c.name, t.name, err)
					continue
				}
				if err != nil {
					return all, fmt.Errorf("%s on %s: %w", c.name, t.name, err)
				}
				x.Round = round
				all = append(all, x)
			}
		}
	}
	return all, nil
}

func measureOne(ctx context.Context, s settings, c cell, t target, upstream *process) (sample, error) {
	waitQuiet(ctx, s.patience)
	spec := t.spec(c)
	spec.Duration = s.warm
	if r, err := loadgen.Run(spec); err != nil || r.Errors == r.Requests {
		return sample{}, fmt.Errorf("warm-up: %v %s", err, r.FirstErr)
	}
	others := func() time.Duration {
		return machineBusy() - cpuOf(t.pid) - cpuOf(upstream.pid()) - cpuOf(os.Getpid())
	}
	cpu, elsewhere, at := cpuOf(t.pid), others(), time.Now()
	spec.Duration = s.d
	r, err := load(c, spec, upstream)
	if err != nil {
		return sample{}, err
	}
	x := sample{Cell: c.name, Target: t.name, Result: r, PeakMiB: peakMiB(t.pid)}
	x.CPUMicros = float64((cpuOf(t.pid) - cpu).Nanoseconds()) / 1e3 / float64(max(1, r.Requests-r.Errors))
	x.OtherCPUs = max(0, (others()-elsewhere).Seconds()/time.Since(at).Seconds())
	note := ""
	if r.Errors > 0 {
		note = fmt.Sprintf("  ERRORS %d: %.200s", r.Errors, r.FirstErr)
	}
	log.Printf("%-17s %-13s %7.0f/s  cpu %7.1f µs  p50 %6.0f  p99 %7.0f µs  others %.2f%s", c.name, t.name, r.RPS, x.CPUMicros, r.Latency.P50, r.Latency.P99, x.OtherCPUs, note)
	return x, nil
}

// load sends a steady load, or bursts. Before each burst the upstream closes its
// connections; the latencies are those of the last burst.
func load(c cell, spec loadgen.Spec, upstream *process) (sum loadgen.Result, err error) {
	if c.burst == 0 {
		return loadgen.Run(spec)
	}
	end := time.Now().Add(spec.Duration)
	spec.Duration, spec.Requests = 0, c.burst
	var requests, failed int
	for n := 0; n == 0 || time.Now().Before(end) && n < mostBursts; n++ {
		if err := control(upstream.base, c, true); err != nil {
			return sum, err
		}
		time.Sleep(noticed)
		first := sum.FirstErr
		if sum, err = loadgen.Run(spec); err != nil {
			return sum, err
		}
		if first != "" {
			sum.FirstErr = first
		}
		requests, failed = requests+sum.Requests, failed+sum.Errors
	}
	sum.Requests, sum.Errors = requests, failed
	return sum, nil
}

// How many bursts make a measurement, and how long a target gets to notice that its
// connections are gone.
const (
	mostBursts = 50
	noticed    = 100 * time.Millisecond
)

// control configures the upstream's responses, or closes its connections over TLS.
func control(base string, c cell, drop bool) error {
	query := fmt.Sprintf("latency=0s&delay=0s&chunks=%d&keep=0", max(1, c.chunks))
	if drop {
		query += "&drop=1"
	}
	resp, err := http.Get(base + "/__ctl?" + query)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// busyOthers is how many cores other processes may use before a sample counts as disturbed.
const busyOthers = 0.3

// waitQuiet waits until other processes are quiet, but no longer than patience.
func waitQuiet(ctx context.Context, patience time.Duration) {
	for end := time.Now().Add(patience); time.Now().Before(end) && ctx.Err() == nil; {
		b, at := machineBusy(), time.Now()
		time.Sleep(200 * time.Millisecond)
		if (machineBusy()-b).Seconds()/time.Since(at).Seconds() < busyOthers {
			return
		}
	}
}

// quiet returns the undisturbed samples, or all samples if every one was disturbed.
func quiet(v []sample) []sample {
	q := slices.DeleteFunc(slices.Clone(v), func(s sample) bool { return s.OtherCPUs > busyOthers })
	if len(q) == 0 {
		return v
	}
	return q
}

// start-up times: from exec to the first good answer.
type coldStart struct {
	Milliseconds, CPUMilliseconds, ResidentMiB float64
}

// coldStarts starts the gateway n times, with the arguments that each returns, and sends
// requests until one gets a good response.
func coldStarts(ctx context.Context, n int, binary string, args func(i int) []string, upstream string) ([]coldStart, error) {
	var all []coldStart
	for i := 0; i < n && ctx.Err() == nil; i++ {
		begin := time.Now()
		p, err := start(readyLine, gatewayEnv, binary, args(i)...)
		if err != nil {
			return all, err
		}
		t := target{name: gatewayName, base: p.base, headers: gatewayHeaders(upstream), translates: true}
		spec := t.spec(cells[0])
		spec.Conns, spec.Requests = 1, 1
		r, err := loadgen.Run(spec)
		elapsed := time.Since(begin)
		if err == nil && r.Errors > 0 {
			err = fmt.Errorf("the first answer: %s", r.FirstErr)
		}
		if err == nil {
			all = append(all, coldStart{float64(elapsed.Microseconds()) / 1e3, float64(cpuOf(p.pid()).Microseconds()) / 1e3, residentMiB(p.pid())})
		}
		p.stop()
		if err != nil {
			return all, err
		}
	}
	return all, ctx.Err()
}
