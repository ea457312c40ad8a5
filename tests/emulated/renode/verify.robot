*** Settings ***
Documentation       Runs verification firmware on Renode's cores and waits for the result line, whose
...                 CRC covers every output. First: python tests/emulated/renode/build_firmware.py FOLDER
...                 cortex-m4 cortex-m55; then renode-test with --variable FOLDER:<absolute path>.
Library             OperatingSystem

*** Variables ***
${FOLDER}           ${CURDIR}/../../build/renode

*** Keywords ***
Verify On
    [Arguments]                 ${target}
    ${expected}=                Get File  ${FOLDER}/${target}/expected.txt
    Execute Command             mach create
    Execute Command             machine LoadPlatformDescription @${FOLDER}/${target}/platform.repl
    Create Terminal Tester      sysbus.uart0  timeout=5  defaultPauseEmulation=true
    Execute Command             sysbus LoadELF @${FOLDER}/${target}/toy.elf
    Execute Command             cpu VectorTableOffset 0x0
    Create Log Tester           0.5  defaultPauseEmulation=true
    Wait For Line On Uart       ${expected}  treatAsRegex=true
    Should Not Be In Log        non existing peripheral

*** Test Cases ***
Cortex-M4 Computes Every Output
    Verify On                   cortex-m4

Cortex-M55 Computes Every Output
    Verify On                   cortex-m55
