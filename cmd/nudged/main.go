// Command nudged chases people for documents: it reminds the recipients of open document requests
// in PostgreSQL by mail, each slot at most once.
//
// It owns flags, signals and wiring, and may import every package of this module. Each subcommand
// has a file of its own.
//
// Invariants:
//
//  1. A user's mistake ends in one line for each mistake and exit status 2, never in a stack trace.
//  2. What failed ends in one line and exit status 1.
//  3. Facts go to standard output, logs and errors to standard error.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"nudged/internal/config"
)

// Exit statuses.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// globals are what every subcommand gets.
type globals struct {
	ctx    context.Context //nolint:containedctx // kong hands one value to every command
	stdout io.Writer
	stderr io.Writer
	flags  *commonFlags
	zones  zoneData

	databaseFrom string // the flag or the variable that the URL of flags came from
}

type commonFlags struct {
	ConfigFile  string `name:"config.file" env:"NUDGED_CONFIG_FILE" placeholder:"FILE" help:"Configuration file (YAML)."`
	DatabaseURL string `name:"database.url" env:"NUDGED_DATABASE_URL" placeholder:"URL" help:"PostgreSQL to use; wins over the file."`
	LogLevel    string `name:"log.level" env:"NUDGED_LOG_LEVEL" enum:"debug,info,warn,error" default:"info" help:"debug, info, warn or error."`
	LogFormat   string `name:"log.format" env:"NUDGED_LOG_FORMAT" enum:"logfmt,json" default:"logfmt" help:"logfmt or json."`
}

type commands struct {
	commonFlags

	Run         runCommand         `cmd:"" help:"Run the daemon."`
	Migrate     migrateCommand     `cmd:"" help:"Apply the migrations of the schema nudged."`
	CheckConfig checkConfigCommand `cmd:"" name:"check-config" help:"Check the configuration file and print every mistake."`
	Plan        planCommand        `cmd:"" help:"Print the slots of a cadence, or of a request."`
	Explain     explainCommand     `cmd:"" help:"Tell what was sent for a request, what was not and why, and what comes next."`
	Render      renderCommand      `cmd:"" help:"Show the very mail of a slot without sending it."`
	SendTest    sendTestCommand    `cmd:"" name:"send-test" help:"Send one sample mail through the configured relay and tell how it went."`
	Unknown     unknownCommand     `cmd:"" help:"List the reminders whose fate is unknown."`
	Resolve     resolveCommand     `cmd:"" help:"Settle an unknown outcome."`
	Pause       pauseCommand       `cmd:"" help:"Send nothing for a request until a time, or until resumed."`
	Resume      resumeCommand      `cmd:"" help:"End a pause."`
	Suppress    suppressCommand    `cmd:"" help:"Never mail an address."`
	Unsuppress  unsuppressCommand  `cmd:"" help:"Let an address be mailed again."`
	Adopt       adoptCommand       `cmd:"" help:"Take a restored database, or one of another environment, into service."`
	Version     versionCommand     `cmd:"" help:"Print the version."`
}

// usageError is a mistake of the user that only shows when the command runs.
type usageError struct{ err error }

func (e usageError) Error() string { return e.err.Error() }

func (e usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// exited carries an exit status out of kong, which ends the process itself after --help.
type exited int

// run parses the arguments, runs the subcommand and returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (status int) {
	var cli commands
	defer func() {
		if code, ok := recover().(exited); ok {
			status = int(code)
		}
	}()
	parser, err := kong.New(&cli,
		kong.Name("nudged"),
		kong.Description("Reminds people of the documents they owe, each reminder at most once."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(code int) { panic(exited(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
	)
	if err != nil {
		return fail(stderr, err)
	}
	command, err := parser.Parse(args)
	if err != nil {
		fmt.Fprintf(stderr, "nudged: %s (see nudged --help)\n", err)
		return exitUsage
	}
	zones, err := zoneDataInForce(os.Getenv("ZONEINFO"))
	if err != nil && command.Command() != "version" {
		return fail(stderr, err)
	}
	return fail(stderr, errors.Join(command.Run(&globals{
		ctx: ctx, stdout: stdout, stderr: stderr, flags: &cli.commonFlags, zones: zones, databaseFrom: databaseFrom(command),
	}), err))
}

// databaseFrom names what a URL beside the configuration file came from: the flag, or else its variable.
func databaseFrom(command *kong.Context) string {
	for _, step := range command.Path {
		if step.Flag != nil && step.Flag.Name == "database.url" {
			return "--database.url"
		}
	}
	return "NUDGED_DATABASE_URL"
}

// fail prints an error, if there is one, and returns the exit status for it.
func fail(stderr io.Writer, err error) int {
	if err == nil {
		return exitDone
	}
	if mistakes, ok := errors.AsType[config.Mistakes](err); ok {
		fmt.Fprintln(stderr, mistakes.Error())
		return exitUsage
	}
	if errors.Is(err, context.Canceled) {
		err = errors.New("interrupted")
	}
	fmt.Fprintf(stderr, "nudged: %s\n", oneLine(err))
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}
