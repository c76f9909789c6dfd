package main

func (c *runCommand) runDev(g *globals) error { return usagef("--dev is not there yet") }
