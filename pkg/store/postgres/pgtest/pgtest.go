// Package pgtest runs a PostgreSQL server for tests.
package pgtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// ErrNotInstalled is returned by [Start] if no PostgreSQL server is installed.
var ErrNotInstalled = errors.New("no PostgreSQL server is installed: install the package postgresql, or set TOOLCTL_POSTGRES to the folder of initdb and postgres")

// Server is a server in a temporary folder. Clients connect by a socket in the folder.
type Server struct {
	dir, bin string
	attr     *syscall.SysProcAttr
	port     int // 0 is the default port; only the socket uses it
	process  *exec.Cmd
	ended    chan struct{} // closed when the process has ended
	schemas  atomic.Int64
}

// Start creates a database cluster and starts a server on it.
func Start() (_ *Server, err error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}
	s := &Server{bin: bin}
	if s.dir, err = os.MkdirTemp("", "pg"); err != nil { // short: the path of a socket has 107 bytes at most
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(s.dir))
		}
	}()
	if s.attr, err = credentials(s.dir); err != nil {
		return nil, err
	}
	out, err := s.command("initdb", "-D", filepath.Join(s.dir, "data"), "-U", "postgres", "-A", "trust", "-N", "-E", "UTF8", "--locale=C").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	return s, s.Start()
}

func find() (string, error) {
	if dir := os.Getenv("TOOLCTL_POSTGRES"); dir != "" {
		return dir, nil
	}
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is valid
	slices.SortFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	if path, err := exec.LookPath("postgres"); err == nil {
		dirs = append([]string{filepath.Dir(path)}, dirs...)
	}
	for _, dir := range dirs {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir, nil
		}
	}
	return "", ErrNotInstalled
}

func version(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return n
}

// other returns the user that runs the server if root runs the tests, because PostgreSQL refuses to run as root.
func other() (uid, gid int, err error) {
	for _, name := range []string{"postgres", "nobody"} {
		u, lerr := user.Lookup(name)
		if lerr != nil {
			err = lerr
			continue
		}
		if uid, err = strconv.Atoi(u.Uid); err != nil {
			return 0, 0, err
		}
		gid, err = strconv.Atoi(u.Gid)
		return uid, gid, err
	}
	return 0, 0, err
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir, cmd.SysProcAttr = s.dir, s.attr
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
	return cmd
}

// Start starts the server again after [Server.Stop], and returns when it accepts connections.
func (s *Server) Start() error {
	// Without fsync only a crash of the operating system loses what was committed; killing the server does not.
	args := []string{"-D", filepath.Join(s.dir, "data"), "-k", s.dir, "-c", "listen_addresses=", "-c", "max_connections=300", "-c", "fsync=off"}
	if s.port != 0 {
		args = append(args, "-c", "listen_addresses=127.0.0.1", "-c", "port="+strconv.Itoa(s.port), "-c", "ssl=on")
	}
	s.process, s.ended = s.command("postgres", args...), make(chan struct{})
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.process.Stderr = log
	if err := s.process.Start(); err != nil {
		return err
	}
	ended := s.ended
	go func(p *exec.Cmd) {
		_ = p.Wait() // Stop requested the exit, or the log has the reason
		close(ended)
	}(s.process)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for {
		err := s.exec(ctx, "SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-ended:
			text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
			return fmt.Errorf("the server ended: %s", text)
		case <-ctx.Done():
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (s *Server) exec(ctx context.Context, query string) error {
	c, err := pgx.Connect(ctx, s.DSN(""))
	if err != nil {
		return err
	}
	_, err = c.Exec(ctx, query)
	return errors.Join(err, c.Close(ctx))
}

// Exec executes a statement as the owner of the database.
func (s *Server) Exec(ctx context.Context, query string) error { return s.exec(ctx, query) }

// DSN returns the address of a schema of the server; "" is the default schema.
func (s *Server) DSN(schema string) string {
	q := url.Values{"host": {s.dir}, "user": {"postgres"}, "sslmode": {"disable"}}
	if schema != "" {
		q.Set("search_path", schema)
	}
	if s.port != 0 {
		q.Set("port", strconv.Itoa(s.port))
	}
	return "postgres:///postgres?" + q.Encode()
}

// Socket returns the path of the server's socket.
func (s *Server) Socket() string {
	return filepath.Join(s.dir, ".s.PGSQL."+strconv.Itoa(cmp.Or(s.port, 5432)))
}

// ListenTLS restarts the server so that it also listens on a port of 127.0.0.1 with TLS. cert and key are in PEM.
func (s *Server) ListenTLS(port int, cert, key []byte) error {
	s.Stop(syscall.SIGINT)
	for name, text := range map[string][]byte{"server.crt": cert, "server.key": key} {
		path := filepath.Join(s.dir, "data", name)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return err
		}
		if _, err := credentials(path); err != nil {
			return err
		}
	}
	s.port = port
	return s.Start()
}

// Command returns a command that runs as the server's user, in a folder that this user can write.
func (s *Server) Command(path string, args ...string) *exec.Cmd {
	cmd := s.command("", args...)
	cmd.Path, cmd.Args[0] = path, path
	return cmd
}

// NewStore returns the address of a store that does not exist yet, in its own schema.
func (s *Server) NewStore(ctx context.Context) (string, error) {
	schema := fmt.Sprintf("s%d", s.schemas.Add(1))
	return s.DSN(schema), s.exec(ctx, "CREATE SCHEMA "+schema)
}

// Stop ends every connection and the server, and returns when the server has ended. With SIGKILL or SIGQUIT it acts
// like a failure of the machine.
func (s *Server) Stop(signal os.Signal) {
	_ = s.process.Process.Signal(signal) // it may have ended
	select {
	case <-s.ended:
		return
	case <-time.After(20 * time.Second):
	}
	// The server waits for a child process that does not end. An immediate shutdown kills its children after five
	// seconds.
	_ = s.process.Process.Signal(syscall.SIGQUIT)
	<-s.ended
}

// Close stops the server and deletes its folder.
func (s *Server) Close() error {
	s.Stop(syscall.SIGINT)
	return os.RemoveAll(s.dir)
}
