package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"

	"gateway/shared/store"
)

// statement is one of the prepared statements that each table has.
type statement uint8

const (
	stmtGet statement = iota
	stmtUpsert
	stmtReplaceItem // for an existing row with an unchanged expiry
	stmtDelete
	stmtAscending
	stmtDescending
	stmtCountAscending
	stmtCountDescending
	stmtSweep
	numStatements
)

// %s is the table. Keys are blobs: they are compared byte by byte, as DynamoDB compares
// UTF-8 strings. expires is 0 for never.
var statementSQL = [numStatements]string{
	stmtGet: `SELECT item, expires FROM %s WHERE pk = ? AND sk = ?`,
	stmtUpsert: `INSERT INTO %s (pk, sk, item, expires) VALUES (?, ?, ?, ?)
		ON CONFLICT (pk, sk) DO UPDATE SET item = excluded.item, expires = excluded.expires`,
	stmtReplaceItem: `UPDATE %s SET item = ? WHERE pk = ? AND sk = ?`,
	stmtDelete:      `DELETE FROM %s WHERE pk = ? AND sk = ?`,
	stmtAscending: `SELECT sk, item, expires FROM %s
		WHERE pk = ? AND sk >= ? AND sk < ? AND (expires = 0 OR expires > ?) ORDER BY sk`,
	stmtDescending: `SELECT sk, item, expires FROM %s
		WHERE pk = ? AND sk >= ? AND sk < ? AND (expires = 0 OR expires > ?) ORDER BY sk DESC`,
	stmtCountAscending: `SELECT sk, length(item) FROM %s
		WHERE pk = ? AND sk >= ? AND sk < ? AND (expires = 0 OR expires > ?) ORDER BY sk`,
	stmtCountDescending: `SELECT sk, length(item) FROM %s
		WHERE pk = ? AND sk >= ? AND sk < ? AND (expires = 0 OR expires > ?) ORDER BY sk DESC`,
	stmtSweep: `DELETE FROM %[1]s WHERE (pk, sk) IN
		(SELECT pk, sk FROM %[1]s WHERE expires > 0 AND expires <= ? LIMIT ?)`,
}

// tableIndex is the index of a table in store.TableNames, -1 for an unknown one.
func tableIndex(name store.TableName) int {
	for i, n := range store.TableNames {
		if n == name {
			return i
		}
	}
	return -1
}

// conn is one connection with its prepared statements. One goroutine at a time uses it,
// directly through database/sql/driver, because the pool of database/sql would cost more
// than most of the statements.
type conn struct {
	c     driver.Conn
	stmts [][numStatements]driver.Stmt
	plain map[string]driver.Stmt // statements without a table: BEGIN, COMMIT...
	args  [4]driver.NamedValue
	dest  [3]driver.Value
}

// open connects to the file. A read-only connection does not create it.
func open(path string, readOnly bool) (*conn, error) {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a Windows path: /C:/...
	}
	dsn := "file:" + (&url.URL{Path: slashed}).EscapedPath()
	if readOnly {
		dsn += "?mode=ro"
	}
	connector, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, wrap(err)
	}
	c, err := connector.Connect(context.Background())
	if err != nil {
		return nil, wrap(err)
	}
	cn := &conn{
		c:     c,
		stmts: make([][numStatements]driver.Stmt, len(store.TableNames)),
		plain: make(map[string]driver.Stmt),
	}
	for i := range cn.args {
		cn.args[i].Ordinal = i + 1
	}
	return cn, nil
}

func (c *conn) close() error {
	for i := range c.stmts {
		for _, s := range c.stmts[i] {
			if s != nil {
				s.Close()
			}
		}
	}
	for _, s := range c.plain {
		s.Close()
	}
	return wrap(c.c.Close())
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("store: sqlite: %w", err)
}

// run executes a statement without result rows.
func (c *conn) run(sql string, args ...driver.Value) error {
	s := c.plain[sql]
	if s == nil {
		var err error
		if s, err = c.c.Prepare(sql); err != nil {
			return wrap(err)
		}
		c.plain[sql] = s
	}
	_, err := s.(driver.StmtExecContext).ExecContext(context.Background(), c.bind(args))
	return wrap(err)
}

// setFlushed records that the database has all changes of the logs up to a sequence number.
func (c *conn) setFlushed(seq uint64) error {
	return c.run("UPDATE flushed SET seq = ?", int64(seq))
}

// once is run for a statement that is not worth preparing for later.
func (c *conn) once(sql string) error {
	s, err := c.c.Prepare(sql)
	if err != nil {
		return wrap(err)
	}
	defer s.Close()
	_, err = s.(driver.StmtExecContext).ExecContext(context.Background(), nil)
	return wrap(err)
}

// numbers executes a statement and returns the integers in its one row.
func (c *conn) numbers(sql string) ([]int64, error) {
	s, err := c.c.Prepare(sql)
	if err != nil {
		return nil, wrap(err)
	}
	defer s.Close()
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), nil)
	if err != nil {
		return nil, wrap(err)
	}
	defer rows.Close()
	dest := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(dest); err != nil {
		return nil, wrap(err)
	}
	numbers := make([]int64, len(dest))
	for i, v := range dest {
		numbers[i], _ = v.(int64)
	}
	return numbers, nil
}

func (c *conn) prepared(table int, k statement) (driver.Stmt, error) {
	s := c.stmts[table][k]
	if s == nil {
		var err error
		if s, err = c.c.Prepare(fmt.Sprintf(statementSQL[k], store.TableNames[table])); err != nil {
			return nil, wrap(err)
		}
		c.stmts[table][k] = s
	}
	return s, nil
}

// exec runs a prepared statement and returns how many rows it changed.
func (c *conn) exec(table int, k statement, args ...driver.Value) (int64, error) {
	s, err := c.prepared(table, k)
	if err != nil {
		return 0, err
	}
	res, err := s.(driver.StmtExecContext).ExecContext(context.Background(), c.bind(args))
	if err != nil {
		return 0, wrap(err)
	}
	n, err := res.RowsAffected()
	return n, wrap(err)
}

// query runs a prepared statement. The rows must be closed before the next use of the
// connection.
func (c *conn) query(table int, k statement, args ...driver.Value) (driver.Rows, error) {
	s, err := c.prepared(table, k)
	if err != nil {
		return nil, err
	}
	rows, err := s.(driver.StmtQueryContext).QueryContext(context.Background(), c.bind(args))
	return rows, wrap(err)
}

func (c *conn) bind(args []driver.Value) []driver.NamedValue {
	for i, v := range args {
		c.args[i].Value = v
	}
	return c.args[:len(args)]
}

// get reads one row whether expired or not; ok is false when it is absent.
func (c *conn) get(table int, key store.Key) (item store.Item, expires int64, ok bool, err error) {
	rows, err := c.query(table, stmtGet, []byte(key.PK()), []byte(key.SK()))
	if err != nil {
		return nil, 0, false, err
	}
	dest := c.dest[:2]
	err = rows.Next(dest)
	blob, _ := dest[0].([]byte)
	expires, _ = dest[1].(int64)
	clear(dest)
	if closing := rows.Close(); err == nil {
		err = closing
	}
	if errors.Is(err, io.EOF) {
		return nil, 0, false, nil
	}
	if err != nil {
		return nil, 0, false, wrap(err)
	}
	item, err = decodeItem(blob)
	return item, expires, err == nil, err
}

// together makes several reads in one transaction, which locks the file once instead of
// once for each of them.
func (c *conn) together(reads int, read func() error) error {
	if reads < 2 {
		return read()
	}
	if err := c.run("BEGIN"); err != nil {
		return err
	}
	return errors.Join(read(), c.run("COMMIT"))
}
