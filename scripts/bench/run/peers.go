package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// peer is another gateway or proxy that is measured beside ours with the same work.
type peer struct {
	name, version string
	// install downloads the peer into dir; nil: it is on this machine. An error is the reason
	// why it is not measured.
	install func(ctx context.Context, dir, version string) error
	// command returns how the peer is started.
	command    func(dir, upstream, port string) (env, args []string, err error)
	headers    func(upstream string) func(translated bool) map[string]string // nil: none
	translates bool                                                          // it speaks to an Anthropic upstream
	settings   string                                                        // for the table
}

const portkeyVersion = "1.15.2"

//go:embed loopback.cjs
var loopback []byte

//go:embed bifrost.go.txt
var bifrost []byte

// peers are those with a recipe, then those that registries were asked for in vain.
var peers = []peer{
	{
		name: "nginx", install: findNginx, command: nginxCommand,
		settings: "one process, keep-alive to the upstream, no access log",
	},
	{
		name: "Portkey OSS", version: portkeyVersion, install: npmInstall("@portkey-ai/gateway"), command: portkeyCommand, headers: portkeyHeaders, translates: true,
		settings: "from npm on Node, without its console and its logs",
	},
	{
		name: "Bifrost core", version: "v1.7.0", install: goProgram("github.com/maximhq/bifrost/core", bifrost), translates: true,
		command: func(dir, upstream, port string) (env, args []string, err error) {
			return nil, []string{filepath.Join(dir, "peer"), port, upstream}, nil
		},
		settings: "its library behind net/http, because its server is not served by the Go module proxy; no logs, 256 workers a provider",
	},
	{name: "GoModel", version: "latest", install: goModule("github.com/enterpilot/gomodel")},
	{name: "Ferro", version: "latest", install: goModule("github.com/ferro-labs/ai-gateway")},
}

// goModule asks the Go module proxy for a module. There is no recipe to run these.
func goModule(path string) func(context.Context, string, string) error {
	return func(ctx context.Context, dir, version string) error {
		cmd := exec.CommandContext(ctx, "go", "list", "-m", path+"@"+version)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
			return fmt.Errorf("the Go module proxy does not serve %s@%s (%s)", path, version, strings.TrimSpace(line[strings.LastIndexByte(line, ':')+1:]))
		}
		return fmt.Errorf("the Go module proxy serves %s@%s, but there is no recipe to run it", path, version)
	}
}

// goProgram builds a program that uses a Go module.
func goProgram(module string, source []byte) func(context.Context, string, string) error {
	return func(ctx context.Context, dir, version string) error {
		if err := os.WriteFile(filepath.Join(dir, "main.go"), source, 0o600); err != nil {
			return err
		}
		for _, args := range [][]string{{"mod", "init", "peer"}, {"get", module + "@" + version}, {"build", "-o", "peer", "."}} {
			cmd := exec.CommandContext(ctx, "go", args...)
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "CGO_ENABLED=0")
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("go %s: %.160s", args[0], bytes.TrimSpace(out))
			}
		}
		return nil
	}
}

func npmInstall(name string) func(context.Context, string, string) error {
	return func(ctx context.Context, dir, version string) error {
		out, err := exec.CommandContext(ctx, "npm", "install", "--silent", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", dir, name+"@"+version).CombinedOutput()
		if err != nil {
			return fmt.Errorf("npm does not install %s@%s: %.160s", name, version, bytes.TrimSpace(out))
		}
		return os.WriteFile(filepath.Join(dir, "loopback.cjs"), loopback, 0o600)
	}
}

func portkeyCommand(dir, _, port string) (env, args []string, err error) {
	return []string{"TRUSTED_CUSTOM_HOSTS=127.0.0.1", "NODE_ENV=production"},
		[]string{"node", "--require", filepath.Join(dir, "loopback.cjs"), filepath.Join(dir, "node_modules/@portkey-ai/gateway/build/start-server.js"), "--headless", "--port=" + port}, nil
}

func portkeyHeaders(upstream string) func(bool) map[string]string {
	return func(translated bool) map[string]string {
		provider := "openai"
		if translated {
			provider = "anthropic"
		}
		return map[string]string{"x-portkey-provider": provider, "x-portkey-custom-host": upstream + "/v1", "Authorization": "Bearer sk-bench"}
	}
}

func findNginx(context.Context, string, string) error {
	if _, err := exec.LookPath("nginx"); err != nil {
		return errors.New("nginx is not installed")
	}
	return nil
}

func nginxCommand(dir, upstream, port string) (env, args []string, err error) {
	conf := fmt.Sprintf(`daemon off; master_process off; pid %[1]s/nginx.pid; error_log stderr error;
events { worker_connections 1024; }
http {
 access_log off; client_max_body_size 20m; client_body_buffer_size 256k;
 client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
 upstream up { server %[2]s; keepalive 64; }
 server { listen 127.0.0.1:%[3]s; location / { proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_buffering off; } }
}
`, dir, strings.TrimPrefix(upstream, "http://"), port)
	file := filepath.Join(dir, "nginx.conf")
	return nil, []string{"nginx", "-p", dir, "-c", file}, os.WriteFile(file, []byte(conf), 0o600)
}

// row is one line of the table of programs.
type row struct{ name, version, command, verdict string }

// startPeers installs and starts the peers that can be. stop ends all of them.
func startPeers(ctx context.Context, dir, upstream string) (targets []target, rows []row, stop func(), err error) {
	var running []*process
	stop = func() {
		for _, p := range running {
			p.stop()
		}
	}
	for _, p := range peers {
		at := filepath.Join(dir, strings.ReplaceAll(p.name, " ", "-"))
		if err := os.MkdirAll(at, 0o700); err != nil {
			return nil, nil, stop, err
		}
		r := row{name: p.name, version: p.version}
		one, args, failed := p.start(ctx, at, upstream)
		if failed != nil {
			r.verdict = "not run: " + failed.Error()
			rows = append(rows, r)
			continue
		}
		running = append(running, one)
		t := target{name: p.name, base: one.base, pid: one.pid(), translates: p.translates, peer: true}
		if p.headers != nil {
			t.headers = p.headers(upstream)
		}
		targets = append(targets, t)
		r.command, r.verdict = strings.NewReplacer(at, "DIR", upstream, "UPSTREAM", portOf(one.base), "PORT").Replace(strings.Join(args, " ")), p.settings
		r.version = strings.TrimSpace(r.version + " " + versionOf(args[0]))
		rows = append(rows, r)
	}
	return targets, rows, stop, nil
}

func (p *peer) start(ctx context.Context, dir, upstream string) (*process, []string, error) {
	if err := p.install(ctx, dir, p.version); err != nil {
		return nil, nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	_ = ln.Close()
	env, args, err := p.command(dir, upstream, port)
	if err != nil {
		return nil, nil, err
	}
	one, err := startOn("127.0.0.1:"+port, env, args)
	return one, args, err
}

// startOn starts a server that does not announce its address, and waits until it accepts
// connections there.
func startOn(addr string, env, args []string) (*process, error) {
	p := &process{cmd: exec.Command(args[0], args[1:]...), base: "http://" + addr, exited: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), env...)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { // ends with the process
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		select {
		case <-p.exited:
			return nil, fmt.Errorf("%s ended before it listened", filepath.Base(args[0]))
		default:
		}
		if c, err := net.Dial("tcp", addr); err == nil {
			_ = c.Close()
			return p, nil
		}
	}
	_ = p.cmd.Process.Signal(syscall.SIGKILL)
	return nil, fmt.Errorf("%s did not listen in time", filepath.Base(args[0]))
}

func portOf(base string) string { return base[strings.LastIndexByte(base, ':')+1:] }

// versionOf is what a program states about its version.
func versionOf(program string) string {
	out, _ := exec.Command(program, "-v").CombinedOutput()
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if line == "" {
		return ""
	}
	return "(" + filepath.Base(program) + " " + strings.TrimPrefix(line, "nginx version: nginx/") + ")"
}

// ratios are a figure of a target as a multiple of the bare proxy's, round by round.
func ratios(all []sample, cell, name string, get func(sample) float64) (v []float64) {
	for _, s := range all {
		if s.Cell != cell || s.Target != name || s.Errors > 0 {
			continue
		}
		for _, p := range all {
			if p.Cell == cell && p.Target == proxyName && p.Round == s.Round && get(p) > 0 {
				v = append(v, get(s)/get(p))
			}
		}
	}
	return v
}

// reportPeers writes the page: programs and commands, then each figure as a multiple of the bare
// proxy's with its spread over the rounds.
func reportPeers(w io.Writer, s settings, use []cell, targets []target, rows []row, all []sample) {
	fmt.Fprintf(w, "# Benchmark beside peers\n\nThe gateway, a bare Go proxy and other gateways with the same work on one machine in one run. All figures are multiples of those of the bare proxy in the same round: the median, and the least and the greatest round. `make bench-peers` installs what the registries offer, measures, and writes this page. Of %s: %d rounds of %s, %d cores.\n\n", time.Now().UTC().Format(time.DateOnly), s.rounds, s.d, runtime.NumCPU())
	fmt.Fprintln(w, "All programs run on loopback against one upstream that writes prepared bytes, each alone under load, in turns. The gateway authenticates, counts, logs every body and records usage, as it does by default; the others are started with their logs off. CPU is that of the process for each good response, with the machine saturated. In the rows `anthropic` programs that translate do so; others forward the request unchanged, so that they show less work. `failed` is work that a program did not do without an error; the output of the run names the error.")
	if slices.ContainsFunc(all, func(s sample) bool { return s.OtherCPUs > busyOthers }) {
		fmt.Fprintln(w, "\nThe machine was busy with other work during a part of this run, which widens the spread.")
	}
	fmt.Fprintln(w, "\n| Program | Version | Command | Settings |\n|---|---|---|---|")
	for _, r := range rows {
		command := "`" + r.command + "`"
		if r.command == "" {
			command = ""
		}
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", r.name, r.version, command, strings.ReplaceAll(r.verdict, "|", "/"))
	}
	for _, f := range []struct {
		title string
		get   func(sample) float64
	}{
		{"CPU for each response (lower is better)", func(s sample) float64 { return s.CPUMicros }},
		{"Responses per second (higher is better)", func(s sample) float64 { return s.RPS }},
		{"Median latency (lower is better)", func(s sample) float64 { return s.Latency.P50 }},
		{"Peak memory (lower is better)", func(s sample) float64 { return s.PeakMiB }},
	} {
		fmt.Fprintf(w, "\n## %s\n\n| Work |", f.title)
		for _, t := range targets {
			fmt.Fprintf(w, " %s |", t.name)
		}
		fmt.Fprintf(w, "\n|---|%s\n", strings.Repeat("--:|", len(targets)))
		for _, c := range use {
			fmt.Fprintf(w, "| %s |", c.what)
			for _, t := range targets {
				v := ratios(all, c.name, t.name, f.get)
				switch {
				case len(v) == 0:
					fmt.Fprint(w, " failed |")
				case t.name == proxyName:
					fmt.Fprint(w, " 1 |")
				default:
					fmt.Fprintf(w, " %.2f (%.2f–%.2f) |", median(v), slices.Min(v), slices.Max(v))
				}
			}
			fmt.Fprintln(w)
		}
	}
}

// comparePeers measures the first cells on the gateway, the bare proxy and all peers that can be
// run, and writes the page to file.
func comparePeers(ctx context.Context, s settings, use []cell, file string) error {
	dir, err := os.MkdirTemp("", "gateway-peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	bin, err := build(ctx, dir, programs)
	if err != nil {
		return err
	}
	const free = "127.0.0.1:0"
	upstream, err := start(listenLine, nil, bin["mockupstream"], "-addr", free, "-secure", dir)
	if err != nil {
		return err
	}
	defer upstream.stop()
	proxy, err := start(listenLine, nil, bin["goproxy"], "-addr", free, "-upstream", upstream.base)
	if err != nil {
		return err
	}
	defer proxy.stop()
	gateway, err := start(readyLine, gatewayEnv, bin["gateway"], "-addr", free, "-data", filepath.Join(dir, "data"), "-mock=false")
	if err != nil {
		return err
	}
	defer gateway.stop()
	targets := []target{
		{name: proxyName, base: proxy.base, pid: proxy.pid()},
		{name: gatewayName, base: gateway.base, pid: gateway.pid(), headers: gatewayHeaders(upstream.base), translates: true},
	}
	rows := []row{
		{proxyName, runtime.Version(), "goproxy -upstream UPSTREAM", "httputil.ReverseProxy and nothing else"},
		{gatewayName, "this revision", "local -mock=false -data DIR", "keys, usage events, logs with bodies, embedded store"},
	}
	others, more, stop, err := startPeers(ctx, dir, upstream.base)
	defer stop()
	if err != nil {
		return err
	}
	targets, rows = append(targets, others...), append(rows, more...)
	all, err := measure(ctx, s, use, targets, upstream)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	reportPeers(&page, s, use, targets, rows, all)
	fmt.Print(page.String())
	return os.WriteFile(file, page.Bytes(), 0o644)
}

// process is a server that this command has started.
type process struct {
	cmd    *exec.Cmd
	base   string // http://ADDR
	exited chan struct{}
}

// build compiles the commands into dir and returns their paths by name.
func build(ctx context.Context, dir string, packages map[string]string) (map[string]string, error) {
	out := make(map[string]string, len(packages))
	for name, pkg := range packages {
		out[name] = filepath.Join(dir, name)
		cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", out[name], pkg)
		if b, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("building %s: %w\n%s", pkg, err, b)
		}
	}
	return out, nil
}

// start runs a server and waits for the line that specifies where it listens: it begins with
// announce and ends with the address.
func start(announce string, env []string, path string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(path, args...), exited: make(chan struct{})}
	p.cmd.Env, p.cmd.Stderr = append(os.Environ(), env...), os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	listening := make(chan string, 1)
	go func() {
		for sc := bufio.NewScanner(stdout); sc.Scan(); {
			if addr, ok := strings.CutPrefix(sc.Text(), announce); ok {
				select {
				case listening <- addr:
				default:
				}
			}
		}
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	select {
	case addr := <-listening:
		p.base = "http://" + strings.TrimSuffix(strings.TrimPrefix(addr, "http://"), "/v1")
		return p, nil
	case <-p.exited:
		return nil, fmt.Errorf("%s ended before it listened", filepath.Base(path))
	case <-time.After(30 * time.Second):
		p.stop()
		return nil, fmt.Errorf("%s did not listen in time", filepath.Base(path))
	}
}

// stop sends SIGTERM; after 40 seconds it kills the process.
func (p *process) stop() {
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(40 * time.Second):
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
}

func (p *process) pid() int { return p.cmd.Process.Pid }
